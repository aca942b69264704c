#include "bench/plan_costs.h"

#include <algorithm>

namespace doppler::bench {
namespace {

uint64_t part_of(uint64_t whole, double positions, uint32_t keys) {
  return static_cast<uint64_t>(static_cast<double>(whole) * std::min(1.0, positions / keys));
}

// Mean over the rows of how many positions a row sees: row i the depth + i + 1 before and with it, `keys` at most.
double mean_positions(const StepShape& shape, uint32_t keys) {
  if (shape.all_sides) return shape.depth + std::min(shape.rows, keys);
  const double first = shape.depth + 1.0, last = static_cast<double>(shape.depth) + shape.rows;
  if (last <= keys) return (first + last) / 2;
  if (first >= keys) return keys;
  const double growing = keys - first + 1;  // rows that see fewer, or just as many
  return ((first + keys) / 2 * growing + keys * (shape.rows - growing)) / shape.rows;
}

}  // namespace

Cost cost_of(const gpu::Plan& plan, size_t command, const StepShape& shape) {
  const gpu::PlanEntry& entry = plan.entries[command];
  const uint32_t* words = plan.words.data() + command * gpu::kPlanCommandWords;
  // plan.h: a dispatch's seventh word and a copy's eighth say that figures are per row.
  const uint64_t times = (words[0] == gpu::kDispatch ? words[6] : words[7]) != 0 ? shape.rows : 1;
  Cost cost{.bytes = entry.fixed_bytes + entry.bytes * times, .operations = entry.operations * times};
  if (entry.keys == 0) return cost;
  if (shape.each_alone) {
    const double positions = shape.depth + 1.0;
    cost.bytes = part_of(entry.fixed_bytes, positions, entry.keys) * shape.rows + entry.bytes * times;
    cost.operations = part_of(cost.operations, positions, entry.keys);
    return cost;
  }
  // The bytes of a position are read once for all rows that see it: a window moves on with them.
  const double seen =
      std::min<double>(static_cast<double>(shape.depth) + shape.rows, entry.keys + shape.rows - 1.0);
  cost.bytes =
      static_cast<uint64_t>(static_cast<double>(entry.fixed_bytes) * seen / entry.keys) + entry.bytes * times;
  cost.operations = part_of(cost.operations, mean_positions(shape, entry.keys), entry.keys);
  return cost;
}

uint64_t total_bytes(const gpu::Plan& plan, const StepShape& shape) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < plan.entries.size(); ++i) bytes += cost_of(plan, i, shape).bytes;
  return bytes;
}

}  // namespace doppler::bench
