#include "bench/plan_costs.h"

#include <algorithm>
#include <string_view>

namespace doppler::bench {
namespace {

constexpr std::string_view kCacheReader = "attention";  // the last part of the role, as the families name it

uint64_t part_of(uint64_t whole, double positions, uint32_t ctx_len) {
  if (ctx_len == 0) return whole;
  return static_cast<uint64_t>(static_cast<double>(whole) * std::min(1.0, positions / ctx_len));
}

}  // namespace

Cost cost_of(const gpu::Plan& plan, size_t command, const StepShape& shape) {
  const gpu::PlanEntry& entry = plan.entries[command];
  const uint32_t* words = plan.words.data() + command * gpu::kPlanCommandWords;
  // plan.h: a dispatch's seventh word and a copy's eighth say that figures are per row.
  const uint64_t times = (words[0] == gpu::kDispatch ? words[6] : words[7]) != 0 ? shape.rows : 1;
  Cost cost{.bytes = entry.fixed_bytes + entry.bytes * times, .operations = entry.operations * times};
  const std::string_view role = entry.role;
  if (role.substr(role.rfind('.') + 1) != kCacheReader) return cost;
  // Row i attends to depth + i + 1 positions; their bytes are read once.
  cost.bytes = part_of(entry.fixed_bytes, shape.depth + shape.rows, shape.ctx_len) + entry.bytes * times;
  cost.operations = part_of(cost.operations, shape.depth + (shape.rows + 1) / 2.0, shape.ctx_len);
  return cost;
}

uint64_t total_bytes(const gpu::Plan& plan, const StepShape& shape) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < plan.entries.size(); ++i) bytes += cost_of(plan, i, shape).bytes;
  return bytes;
}

}  // namespace doppler::bench
