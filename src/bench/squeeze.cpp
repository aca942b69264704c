// squeeze.h: the judgements. squeeze_report.cpp puts them into words.
#include "bench/squeeze.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "bench/statistics.h"

namespace doppler::bench {
namespace {

constexpr double kNearBest = 0.99;         // of the fastest cadence: as good
constexpr double kSqueezeHotShare = 0.05;  // of a plan: as in profile_report.cpp
constexpr double kMostSubmits = 2;         // a decode step
constexpr double kMostWall = 1.05;         // times the GPU time: the goal for decode
// As in tuner.cpp: not less accurate than before, with room for another order of additions.
constexpr double kSqueezeErrorRoom = 1.25, kSqueezeErrorFloor = 1e-4;

uint32_t together(const Cadence& cadence) { return cadence.batch * cadence.readback_interval; }

bool is_portable_kernel(std::string_view kernel) { return kernel.find("portable") != std::string_view::npos; }

}  // namespace

Cadence best_cadence(std::span<const CadencePoint> sweep) {
  double fastest = 0;
  for (const CadencePoint& point : sweep) fastest = std::max(fastest, point.rate);
  const CadencePoint* best = nullptr;
  for (const CadencePoint& point : sweep) {
    if (point.rate < fastest * kNearBest) continue;
    if (!best || together(point.cadence) < together(best->cadence)) best = &point;
  }
  return best ? best->cadence : Cadence{.batch = model::kDefaultBatch};
}

std::vector<RedFlag> red_flags(const FlagInputs& inputs) {
  std::vector<RedFlag> flags;
  for (const kernels::Choice& choice : inputs.choices) {
    if (!choice.forced || choice.table_variant.empty()) continue;
    flags.push_back({"pinned-variant", format_text("%s %s is pinned to %s, which the tables rank below %s.",
                                                   choice.operation.c_str(), choice.shape.c_str(),
                                                   choice.variant.c_str(), choice.table_variant.c_str())});
  }
  for (const PlanProfile& plan : inputs.plans) {
    for (const Group& group : plan.by_kernel) {
      const double share = plan.gpu_seconds > 0 ? group.seconds / plan.gpu_seconds : 0;
      if (!is_portable_kernel(group.name) || share < kSqueezeHotShare) continue;
      flags.push_back({"portable-row", format_text("%s takes %.1f %% of %s and is a portable row.",
                                                   group.name.c_str(), share * 100, plan.plan.c_str())});
    }
  }
  const Row& decode = inputs.decode;
  if (decode.submits_per_token > kMostSubmits) {
    flags.push_back({"submits", format_text("A decode step takes %.2f submits; at most %.0f are expected.",
                                            decode.submits_per_token, kMostSubmits)});
  }
  const double ratio = decode.wall_over_gpu();
  if (ratio > kMostWall) {
    flags.push_back(
        {"idle-device", format_text("The device waits: a step takes %.1f us of wall clock and %.1f us of "
                                    "GPU time (%.2f times).",
                                    decode.gpu_seconds * ratio * 1e6, decode.gpu_seconds * 1e6, ratio)});
  }
  if (decode.gpu_seconds > 0 && decode.host_us_per_token > decode.gpu_seconds * 1e6) {
    flags.push_back(
        {"slow-host", format_text("Recording a step takes the host %.1f us, longer than the device needs "
                                  "to run it (%.1f us).",
                                  decode.host_us_per_token, decode.gpu_seconds * 1e6)});
  }
  return flags;
}

Gate judge(const GateInputs& inputs) {
  Gate gate{.error_before = inputs.error_before, .error_after = inputs.error_after};
  gate.tokens = std::max(inputs.tokens_before.size(), inputs.tokens_after.size());
  const auto [a, b] = std::ranges::mismatch(inputs.tokens_before, inputs.tokens_after);
  gate.equal_tokens = static_cast<size_t>(a - inputs.tokens_before.begin());
  gate.allowed = std::max(kSqueezeErrorFloor, inputs.error_before * kSqueezeErrorRoom);
  const bool same_text = gate.equal_tokens == gate.tokens && gate.tokens > 0;
  const bool same_logits = std::isfinite(inputs.error_before) && inputs.error_after <= gate.allowed;
  gate.passed = same_logits && (same_text || inputs.synthetic);
  gate.sentence = format_text(
      "%s: logits off by %.2e before and %.2e after (allowed: %.2e), %zu of %zu greedy tokens "
      "equal from the start%s.",
      gate.passed ? "passed" : "FAILED", gate.error_before, gate.error_after, gate.allowed, gate.equal_tokens,
      gate.tokens, inputs.synthetic ? " (random weights: not required)" : "");
  return gate;
}

}  // namespace doppler::bench
