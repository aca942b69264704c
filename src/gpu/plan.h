// A plan: the flat list of commands that one prefill chunk or one decode step replays. Recorded once at load
// by PlanBuilder; replayed by Device::submit (native loop over webgpu.h) or by about twenty lines of
// JavaScript. Nothing that changes per token is in here: it lives in the step state buffer, which the GPU
// advances itself. The one exception is `rows`: a prefill chunk holds 1..max_rows tokens, and a dispatch may
// say that one of its grid axes is ceil(rows / rows_per_group).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/pipeline.h"

namespace doppler::gpu {

// Words of a plan. Every command has the same length, so a replay is one indexed loop.
//   dispatch: kDispatch, pipeline, bind group, x, y, z, axis << 28 | rows_per_group (0: a fixed grid), 0
//   copy:     kCopy, source buffer, source offset / 4, target buffer, target offset / 4, bytes / 4, 0, 0
//             (the last word of a copy: 1 if bytes are per row, to be multiplied by `rows`)
inline constexpr uint32_t kPlanCommandWords = 8;
enum PlanCommand : uint32_t { kDispatch = 1, kCopy = 2 };

// A command as the profiler and `kernels --explain` describe it; the replay does not need it.
inline constexpr uint32_t kNotScratch = UINT32_MAX;
struct PlanEntry {
  std::string name;          // variant, or "copy"
  std::string op_label;      // "blk.3.attn_q" or "sample": where in the model
  uint64_t bytes = 0;        // read and written in GPU memory per replay (per row if rows_per_group != 0)
  uint64_t fixed_bytes = 0;  // additionally, independent of the rows: weights
  uint64_t operations = 0;   // multiplications + additions per replay (per row if rows_per_group != 0)
  // Cached positions that fixed_bytes and operations were counted for: the window or the context. With fewer positions
  // in the cache, both numbers shrink in proportion. 0: neither depends on the cache.
  uint32_t keys = 0;
  // One number for each storage binding, or for a copy's source and target: that of its scratch tensor in the
  // PlanBuilder, or kNotScratch. Tensors that share memory have different numbers.
  std::vector<uint32_t> tensors;
};

// A run of commands, up to the next part, that may be replayed apart from the others (PlanBuilder::begin_part).
struct PlanPart {
  uint32_t first = 0;  // its first command
  uint32_t tag = 0;    // what its recorder knows it by; 0: it is replayed once
};

struct Plan {
  std::string name;  // "decode.greedy", "prefill"
  uint32_t max_rows = 1;
  std::vector<uint32_t> words;
  std::vector<PlanEntry> entries;    // one per command
  std::vector<PlanPart> parts = {};  // none: the plan is replayed as a whole

  uint32_t dispatch_count() const;
};

// `base` with commands [first, last) replaced by those of `with`, which has no parts.
Plan spliced(const Plan& base, uint32_t first, uint32_t last, const Plan& with);

// One line a command, by the ids of the words. plan_text.h says what the ids stand for.
std::string describe(const Plan& plan);

}  // namespace doppler::gpu
