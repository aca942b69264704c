// Grouping and floors: the part of profile.h that needs no device.
#include <algorithm>
#include <map>

#include "bench/profile.h"

namespace doppler::bench {
namespace {

void add(Group& group, const CommandTime& command, const std::string& member) {
  ++group.calls;
  group.seconds += command.seconds;
  group.bytes += command.bytes;
  group.operations += command.operations;
  if (std::ranges::find(group.members, member) == group.members.end()) group.members.push_back(member);
}

std::vector<Group> longest_first(std::map<std::string, Group> groups) {
  std::vector<Group> out;
  for (auto& [name, group] : groups) {
    group.name = name;
    out.push_back(std::move(group));
  }
  std::ranges::stable_sort(out, std::greater<>(), &Group::seconds);
  return out;
}

// True: the group took less than its floor, and has none now.
bool refuse_floor(Group& group) {
  if (group.floor_seconds <= group.seconds) return false;
  group.floor_seconds = group.bytes_floor = group.operations_floor = 0;
  return true;
}

}  // namespace

std::string op_kind(std::string_view op_label) {
  std::string out;
  for (const std::string& part : split(op_label, '.')) {
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    out += (out.empty() ? "" : ".") + (number ? std::string("*") : part);
  }
  return out;
}

void set_floor(Group& group, std::string_view kernel, const kernels::Ceilings& ceilings) {
  double peak = ceilings.f32_operations_per_second;
  if (kernel.find(".dp4a") != std::string_view::npos) peak = ceilings.dp4a_operations_per_second;
  for (const std::string_view part : {".matrix", ".narrow"}) {
    if (kernel.find(part) != std::string_view::npos) peak = ceilings.matrix_operations_per_second;
  }
  const double read = ceilings.read_bytes_per_second;
  group.bytes_floor = read > 0 ? static_cast<double>(group.bytes) / read : 0;
  group.operations_floor = peak > 0 ? static_cast<double>(group.operations) / peak : 0;
  group.floor_seconds = std::max(group.bytes_floor, group.operations_floor);
  group.bound = group.operations_floor > group.bytes_floor ? Bound::kOperations : Bound::kBytes;
}

PlanProfile summarise(std::string plan, std::vector<CommandTime> commands,
                      const kernels::Ceilings& ceilings) {
  PlanProfile profile{.plan = std::move(plan), .commands = std::move(commands)};
  std::map<std::string, Group> of_kernels, of_ops;
  for (CommandTime& command : profile.commands) {
    Group alone{.seconds = command.seconds, .bytes = command.bytes, .operations = command.operations};
    set_floor(alone, command.kernel, ceilings);
    refuse_floor(alone);
    command.floor_seconds = alone.floor_seconds;
    const std::string kind = op_kind(command.op_label);
    add(of_kernels[command.kernel], command, kind);
    add(of_ops[kind], command, command.kernel);
    profile.gpu_seconds += command.seconds;
  }
  profile.by_kernel = longest_first(std::move(of_kernels));
  profile.by_op = longest_first(std::move(of_ops));
  for (Group& group : profile.by_kernel) {
    set_floor(group, group.name, ceilings);
    refuse_floor(group);
  }
  for (Group& group : profile.by_op) {
    // An op_label of several kernels (attention and its combine) is what its parts are together.
    Group total;
    for (const std::string& kernel : group.members) {
      Group part;
      for (const CommandTime& command : profile.commands) {
        if (command.kernel == kernel && op_kind(command.op_label) == group.name) add(part, command, kernel);
      }
      set_floor(part, kernel, ceilings);
      total.bytes_floor += part.bytes_floor;
      total.operations_floor += part.operations_floor;
      total.floor_seconds += part.floor_seconds;
    }
    group.bytes_floor = total.bytes_floor;
    group.operations_floor = total.operations_floor;
    group.floor_seconds = total.floor_seconds;
    group.bound = group.operations_floor > group.bytes_floor ? Bound::kOperations : Bound::kBytes;
    profile.broken_floors += refuse_floor(group);
    profile.floor_seconds += group.floor_seconds;
  }
  return profile;
}

}  // namespace doppler::bench
