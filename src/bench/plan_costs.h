// Bytes and operations of a plan's commands as they run: for the rows of a chunk, and with as many cached
// positions as there are. Plans are recorded for a full context; what reads the cache (the role "attention")
// costs less before.
#pragma once

#include <cstdint>

#include "gpu/plan.h"

namespace doppler::bench {

struct StepShape {
  uint32_t rows = 1;     // tokens evaluated together
  uint32_t depth = 0;    // positions in the cache before them
  uint32_t ctx_len = 0;  // positions the plan was recorded for
};

struct Cost {
  uint64_t bytes = 0, operations = 0;
};
// Layers with a sliding window are counted as if it grew with the context: too little, never too much.
Cost cost_of(const gpu::Plan& plan, size_t command, const StepShape& shape);
uint64_t total_bytes(const gpu::Plan& plan, const StepShape& shape);

}  // namespace doppler::bench
