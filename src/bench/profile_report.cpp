#include "bench/profile_report.h"

#include <algorithm>

#include "base/json.h"
#include "engine/paging_report.h"

namespace doppler::bench {
namespace {

constexpr size_t kTopGaps = 3;
constexpr size_t kHottest = 8;
constexpr double kHotShare = 0.05;    // of the step: a portable row below that is no news
constexpr double kLaunchShare = 0.2;  // of the step spent only on launches: worth a note
constexpr const char* kNotToBeQuoted =
    "INVESTIGATION, not to be quoted: each dispatch ran in a pass of its own; doppler bench has the real "
    "speed.";

double us(double seconds) { return seconds * 1e6; }
double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string join(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

double peak_of(const Group& group) {
  return group.operations_floor > 0 ? static_cast<double>(group.operations) / group.operations_floor : 0;
}

// The share of `per_second` in its ceiling; "-" if no ceiling is known or it was broken.
std::string percent(double per_second, double ceiling) {
  return ceiling > 0 && per_second <= ceiling ? format_text("%.0f%%", per_second / ceiling * 100) : "-";
}

Json fraction(double per_second, double ceiling) {
  return ceiling > 0 && per_second <= ceiling ? Json(per_second / ceiling) : Json();
}

std::string table(const char* title, const std::vector<Group>& groups, const PlanProfile& plan,
                  const kernels::Ceilings& ceilings) {
  size_t width = std::string_view(title).size();
  for (const Group& group : groups) width = std::max(width, group.name.size());
  const int w = static_cast<int>(width);
  std::string out =
      format_text("\n%-*s %6s %10s %6s %9s %8s %5s %9s %5s %10s %10s  %s\n", w, title, "calls", "us", "share",
                  "MB", "GB/s", "of BW", "Gop/s", "of it", "floor us", "gap us", "bound by");
  for (const Group& group : groups) {
    const double rate = share(static_cast<double>(group.bytes), group.seconds);
    const double operations = share(static_cast<double>(group.operations), group.seconds);
    out += format_text("%-*s %6u %10.2f %5.1f%% %9.3f %8.1f %5s %9.1f %5s %10.2f %10.2f  %s\n", w,
                       group.name.c_str(), group.calls, us(group.seconds),
                       share(group.seconds, plan.gpu_seconds) * 100, static_cast<double>(group.bytes) / 1e6,
                       rate / 1e9, percent(rate, ceilings.read_bytes_per_second).c_str(), operations / 1e9,
                       percent(operations, peak_of(group)).c_str(), us(group.floor_seconds), us(group.gap()),
                       group.bound == Bound::kBytes ? "bytes" : "operations");
  }
  return out;
}

// The commands that take the most time by themselves, by their place in the model.
std::string hottest(const PlanProfile& plan) {
  std::vector<const CommandTime*> order;
  for (const CommandTime& command : plan.commands) order.push_back(&command);
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) { return a->seconds > b->seconds; });
  order.resize(std::min(order.size(), kHottest));
  size_t width = 0;
  for (const CommandTime* command : order) width = std::max(width, command->op_label.size());
  const int w = static_cast<int>(std::max<size_t>(width, 16));
  std::string out = format_text("\n%-*s %10s %6s %10s %10s  %s\n", w, "hottest commands", "us", "share",
                                "floor us", "gap us", "kernel");
  for (const CommandTime* command : order) {
    out += format_text("%-*s %10.2f %5.1f%% %10.2f %10.2f  %s\n", w, command->op_label.c_str(),
                       us(command->seconds), share(command->seconds, plan.gpu_seconds) * 100,
                       us(command->floor_seconds), us(command->seconds - command->floor_seconds),
                       command->kernel.c_str());
  }
  return out;
}

Json groups_json(const std::vector<Group>& groups, const PlanProfile& plan,
                 const kernels::Ceilings& ceilings) {
  Json out = Json::array();
  for (const Group& group : groups) {
    const double rate = share(static_cast<double>(group.bytes), group.seconds);
    const double operations = share(static_cast<double>(group.operations), group.seconds);
    out.push_back({{"name", group.name},
                   {"members", group.members},
                   {"calls", group.calls},
                   {"seconds", group.seconds},
                   {"share", share(group.seconds, plan.gpu_seconds)},
                   {"bytes", group.bytes},
                   {"bytes_per_second", rate},
                   {"bandwidth_fraction", fraction(rate, ceilings.read_bytes_per_second)},
                   {"operations", group.operations},
                   {"operations_per_second", operations},
                   {"arithmetic_fraction", fraction(operations, peak_of(group))},
                   {"floor_seconds", group.floor_seconds},
                   {"gap_seconds", group.gap()},
                   {"bound", group.bound == Bound::kBytes ? "bytes" : "operations"}});
  }
  return out;
}

bool is_portable(std::string_view kernel) { return kernel.find("portable") != std::string_view::npos; }

// Why `kernel` and not a better row: the refusals that its choices have in common with no other row.
std::string refusals_of(const std::string& kernel, const std::vector<kernels::Choice>& choices) {
  std::vector<std::string> reasons;
  for (const kernels::Choice& choice : choices) {
    if (choice.variant != kernel) continue;
    if (choice.forced) return "it was forced";
    for (const kernels::Refusal& refusal : choice.refused) {
      const std::string text = refusal.variant + ": " + refusal.reason;
      if (std::ranges::find(reasons, text) == reasons.end()) reasons.push_back(text);
    }
  }
  return reasons.empty() ? "the table has no better row" : "refused were " + join(reasons);
}

}  // namespace

std::vector<std::string> notes(const PlanProfile& plan, const ProfileReport& report) {
  std::vector<std::string> out;
  std::vector<Group> gaps = plan.by_op;
  std::ranges::stable_sort(gaps, std::greater<>(), &Group::gap);
  for (size_t i = 0; i < std::min(kTopGaps, gaps.size()); ++i) {
    const Group& group = gaps[i];
    out.push_back(format_text(
        "%s (%s): %.1f us over its floor of %.1f us in %u calls, %.1f %% of the step; bound by %s.",
        group.name.c_str(), join(group.members).c_str(), us(group.gap()), us(group.floor_seconds),
        group.calls, share(group.gap(), plan.gpu_seconds) * 100,
        group.bound == Bound::kBytes ? "bytes" : "operations"));
  }
  for (const Group& group : plan.by_kernel) {
    if (!is_portable(group.name) || share(group.seconds, plan.gpu_seconds) < kHotShare) continue;
    out.push_back(format_text("%s is a portable row in a hot place (%.1f %% of the step; %s): %s.",
                              group.name.c_str(), share(group.seconds, plan.gpu_seconds) * 100,
                              join(group.members).c_str(), refusals_of(group.name, report.choices).c_str()));
  }
  if (plan.broken_floors > 0) {
    out.push_back(format_text(
        "%u of %zu operations took less than the ceilings allow, since their data lay in caches or the "
        "ceilings were measured at lower clocks: they have no floor.",
        plan.broken_floors, plan.by_op.size()));
  }
  const double launching =
      static_cast<double>(plan.commands.size()) * report.facts.ceilings.dispatch_ns / 1e9;
  if (share(launching, plan.wall_seconds) > kLaunchShare) {
    out.push_back(
        format_text("%zu commands at %.2f us each: %.0f us, %.0f %% of the step, goes into launches.",
                    plan.commands.size(), report.facts.ceilings.dispatch_ns / 1e3, us(launching),
                    share(launching, plan.wall_seconds) * 100));
  }
  return out;
}

std::string profile_text(const ProfileReport& report) {
  const RunFacts& f = report.facts;
  std::string out =
      format_text("%s\n%s on %s; lane %s, cache %s; %s\n", kNotToBeQuoted, model_label(f).c_str(),
                  device_line(f.caps).c_str(), f.lane.c_str(), f.kv.c_str(), origin_line(f.origin).c_str());
  out += changes_lines(f);
  out += ceilings_line(f.ceilings);
  if (f.experts.slots != 0) out += engine::paging_line(f.experts) + "\n";
  for (const PlanProfile& plan : report.plans) {
    out += format_text("\n== %s: %u rows at depth %u, %zu commands, median of %u\n", plan.plan.c_str(),
                       plan.rows, plan.depth, plan.commands.size(), plan.repetitions);
    out += format_text(
        "GPU time of all commands %.1f us, floor %.1f us, gap %.1f us; a normal step takes %.1f us of wall "
        "clock\n",
        us(plan.gpu_seconds), us(plan.floor_seconds), us(plan.gap()), us(plan.wall_seconds));
    for (const std::string& note : notes(plan, report)) out += "- " + note + "\n";
    out += table("by op", plan.by_op, plan, f.ceilings);
    out += table("by kernel", plan.by_kernel, plan, f.ceilings);
    out += hottest(plan);
  }
  return out;
}

std::string profile_json(const ProfileReport& report) {
  const RunFacts& f = report.facts;
  Json plans = Json::array();
  for (const PlanProfile& plan : report.plans) {
    Json commands = Json::array();
    for (const CommandTime& command : plan.commands) {
      commands.push_back({{"kernel", command.kernel},
                          {"op_label", command.op_label},
                          {"seconds", command.seconds},
                          {"bytes", command.bytes},
                          {"operations", command.operations},
                          {"floor_seconds", command.floor_seconds},
                          {"gap_seconds", command.seconds - command.floor_seconds}});
    }
    plans.push_back({{"plan", plan.plan},
                     {"rows", plan.rows},
                     {"depth", plan.depth},
                     {"repetitions", plan.repetitions},
                     {"gpu_seconds", plan.gpu_seconds},
                     {"floor_seconds", plan.floor_seconds},
                     {"gap_seconds", plan.gap()},
                     {"wall_seconds", plan.wall_seconds},
                     {"notes", notes(plan, report)},
                     {"by_op", groups_json(plan.by_op, plan, f.ceilings)},
                     {"by_kernel", groups_json(plan.by_kernel, plan, f.ceilings)},
                     {"commands", std::move(commands)}});
  }
  Json out = {{"kind", "profile"}, {"intent", intent_name(Intent::kInvestigate)}, {"synthetic", f.synthetic}};
  add_origin(out, f.origin);
  out.update({{"device", device_json(f.caps)},
              {"model", model_json(f)},
              {"settings",
               {{"lane", f.lane},
                {"kv", f.kv},
                {"rules_off", f.rules_off},
                {"ctx_len", f.ctx_len},
                {"chunk", f.chunk}}},
              {"ceilings", ceilings_json(f.ceilings)},
              {"plans", std::move(plans)}});
  if (f.experts.slots != 0) out["experts"] = engine::paging_json(f.experts);
  return doppler::to_text(out, 2) + "\n";
}

}  // namespace doppler::bench
