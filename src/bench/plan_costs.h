// Bytes and operations of a plan's commands as they run: for the rows of a chunk, and for the positions that are in the
// cache. Plans are recorded for a full cache; a command that reads the cache (PlanEntry::keys) costs less while it
// fills.
#pragma once

#include <cstdint>

#include "gpu/plan.h"

namespace doppler::bench {

struct StepShape {
  uint32_t rows = 1;        // tokens evaluated together
  uint32_t depth = 0;       // positions in the cache before them
  bool each_alone = false;  // each row is of another sequence, all of that depth
  bool all_sides = false;   // each row sees all rows, as in a vision tower
};

struct Cost {
  uint64_t bytes = 0, operations = 0;
};
Cost cost_of(const gpu::Plan& plan, size_t command, const StepShape& shape);
uint64_t total_bytes(const gpu::Plan& plan, const StepShape& shape);

}  // namespace doppler::bench
