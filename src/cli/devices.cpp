// doppler devices: every adapter of every WebGPU library, opened, so that what is listed as usable is usable
// and its features are measured ones. Exit code 1 if there is none.
#include <cstdio>

#include "base/json.h"
#include "base/log.h"
#include "base/own_folders_native.h"
#include "cli/common.h"
#include "cli/verbs.h"

namespace doppler::cli {
namespace {

// Replaces the adapter's capabilities by those of an opened device, or notes why it cannot be opened.
void open_adapter(gpu::AdapterInfo& info, const std::string& provider, size_t index) {
  if (!info.problem.empty()) return;
  auto opened =
      run_now(gpu::Device::open({.provider = provider, .adapter = std::to_string(index), .cache_dir = {}}));
  if (opened) {
    info.caps = (*opened)->caps();
  } else {
    info.problem = opened.error().sentence();
  }
}

std::string features_text(const gpu::Caps& caps) {
  std::string out;
  const auto add = [&](bool there, const std::string& name) {
    if (there) out += (out.empty() ? "" : ", ") + name;
  };
  add(caps.f16, "f16");
  add(caps.subgroups, caps.subgroup_min == caps.subgroup_max
                          ? format_text("subgroups of %u", caps.subgroup_min)
                          : format_text("subgroups of %u to %u", caps.subgroup_min, caps.subgroup_max));
  add(caps.dp4a, "dp4a");
  add(caps.timestamps, "timestamps");
  add(caps.matrix_f16, "matrix");
  return out.empty() ? "none" : out;
}

// The lines after the first, further in.
std::string indented(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at) text.insert(at + 1, "   ");
  return text;
}

void print(const gpu::AdapterInfo& info, size_t index) {
  const gpu::Caps& caps = info.caps;
  std::printf("%zu: %s (%s%s%s)\n", index,
              caps.adapter.empty() ? "no adapter" : printable(caps.adapter).c_str(),
              caps.adapter.empty() ? "" : gpu::adapter_type_name(caps.type), caps.adapter.empty() ? "" : ", ",
              info.provider.empty() ? "any WebGPU library" : info.provider.c_str());
  if (!info.problem.empty()) {
    std::printf("   not usable: %s\n", indented(info.problem).c_str());
    return;
  }
  std::printf("   features  %s\n", features_text(caps).c_str());
  std::printf(
      "   limits    buffers %s, bindings %s, %u storage buffers a dispatch, workgroups of %u with %s\n",
      format_bytes(caps.max_buffer_bytes).c_str(), format_bytes(caps.max_binding_bytes).c_str(),
      caps.max_storage_buffers, caps.max_invocations, format_bytes(caps.max_workgroup_bytes).c_str());
  std::printf("   memory    %s\n",
              caps.memory_bytes == 0 ? "not told" : format_bytes(caps.memory_bytes).c_str());
  std::printf("   units     %s\n",
              caps.compute_units == 0 ? "not told" : format_text("%u", caps.compute_units).c_str());
  std::printf("   driver    %s, %s\n", caps.backend.c_str(), printable(caps.driver, 200).c_str());
}

Json to_json(const gpu::AdapterInfo& info, size_t index) {
  const gpu::Caps& caps = info.caps;
  Json out = {{"index", index},
              {"usable", info.problem.empty()},
              {"name", caps.adapter},
              {"type", gpu::adapter_type_name(caps.type)},
              {"provider", info.provider}};
  if (!info.problem.empty()) {
    out["problem"] = info.problem;
    return out;
  }
  out["backend"] = caps.backend;
  out["vendor"] = caps.vendor;
  out["architecture"] = caps.architecture;
  out["driver"] = caps.driver;
  out["features"] = {{"f16", caps.f16},
                     {"subgroups", caps.subgroups},
                     {"subgroup_min", caps.subgroup_min},
                     {"subgroup_max", caps.subgroup_max},
                     {"dp4a", caps.dp4a},
                     {"timestamps", caps.timestamps},
                     {"matrix_f16", caps.matrix_f16}};
  out["limits"] = {{"max_buffer_bytes", caps.max_buffer_bytes},
                   {"max_binding_bytes", caps.max_binding_bytes},
                   {"max_storage_buffers", caps.max_storage_buffers},
                   {"max_invocations", caps.max_invocations},
                   {"max_workgroup_size_x", caps.max_workgroup_size_x},
                   {"max_workgroup_bytes", caps.max_workgroup_bytes},
                   {"max_workgroups", caps.max_workgroups},
                   {"binding_alignment", caps.binding_alignment}};
  out["memory_bytes"] = caps.memory_bytes;
  out["compute_units"] = caps.compute_units;
  return out;
}

}  // namespace

int devices_verb(std::span<const std::string> arguments) {
  std::string provider;
  bool json = false;
  Args args("doppler devices [flags]",
            "Lists the adapters of every WebGPU library; --device takes their numbers.");
  args.text("webgpu", 0, "NAME", "only this WebGPU library: dawn, wgpu or a path", &provider);
  args.flag("json", 0, "print one JSON list", &json);
  add_log_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;

  if (provider.empty()) provider = environment_variable("DOPPLER_WEBGPU");
  std::vector<gpu::AdapterInfo> adapters = gpu::list_adapters(provider);
  bool any_usable = false;
  Json list = Json::array();
  for (size_t i = 0; i < adapters.size(); ++i) {
    open_adapter(adapters[i], provider, i);
    any_usable = any_usable || adapters[i].problem.empty();
    if (json) {
      list.push_back(to_json(adapters[i], i));
    } else {
      print(adapters[i], i);
    }
  }
  if (json) std::printf("%s\n", to_text(list, 2).c_str());
  return any_usable ? 0 : 1;
}

}  // namespace doppler::cli
