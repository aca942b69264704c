// Where the GPU time of a step goes: every command of the decode plan and of the prefill plan between
// timestamps, grouped by kernel and by op_label, each beside the least time that its bytes and operations allow
// on this device. A profile is an investigation: a compute pass for each dispatch costs time that a real step does
// not pay. Read next: profile_report.h (the texts).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/report.h"

namespace doppler::bench {

struct ProfileSettings {
  uint32_t depth = 128;   // tokens in the cache before the decode step; 0: decode is not profiled
  uint32_t prompt = 512;  // rows of the prefill chunk, at most the runner's chunk; 0: prefill is not profiled
  // Numbers of streams whose decode steps are profiled instead, each stream at depth `depth`; none: one sequence.
  std::vector<uint32_t> streams = {};
  // The size of a picture that goes through the model's vision tower, which is profiled instead; 0: none.
  uint32_t image_width = 0, image_height = 0;
  uint32_t repetitions = 10;  // the median of each command counts
  uint32_t warmups = 2;
  Cadence cadence;  // of the steps whose wall clock is taken; batch 0: 16
  // The plan and the repetition (0: warm-up).
  std::function<void(const std::string& plan, uint32_t repetition)> progress;
};

// A command as it ran: bytes and operations of the rows it had.
struct CommandTime {
  std::string kernel, op_label;
  double seconds = 0;
  uint64_t bytes = 0, operations = 0;
  double floor_seconds = 0;  // the least they can take; set by summarise()
};

enum class Bound : uint8_t { kBytes, kOperations };

struct Group {
  std::string name;                  // the variant, or the op_label without its layer: "blk.*.attn_qkv"
  std::vector<std::string> members;  // the op_labels of a kernel, or the kernels of an op_label
  uint32_t calls = 0;
  double seconds = 0;
  uint64_t bytes = 0, operations = 0;
  // The larger of the two below. 0: no ceiling is known, or the group broke it: it took less, since its data lay in
  // caches or the ceiling was measured at lower clocks.
  double floor_seconds = 0;
  double bytes_floor = 0, operations_floor = 0;
  Bound bound = Bound::kBytes;
  double gap() const { return seconds - floor_seconds; }
};

struct PlanProfile {
  std::string plan;
  uint32_t rows = 1, depth = 0, repetitions = 0;
  std::vector<CommandTime> commands;
  std::vector<Group> by_kernel, by_op;  // longest first
  double gpu_seconds = 0;               // the sum of all commands
  double floor_seconds = 0;             // the sum of the floors of by_op
  uint32_t broken_floors = 0;           // groups of by_op that took less than their ceilings allow
  double gap() const { return gpu_seconds - floor_seconds; }
  double wall_seconds = 0;  // of the same step run normally: median
};

// "blk.12.attn_qkv" -> "blk.*.attn_qkv".
std::string op_kind(std::string_view op_label);

// Sets the least time of the group's bytes and operations. The kernel's name says which arithmetic it does: a name with
// ".dp4a" is held against the dp4a ceiling, any other against f32. A name with ".matrix" has no ceiling, since it is
// not measured.
void set_floor(Group& group, std::string_view kernel, const kernels::Ceilings& ceilings);

// Groups, sums and floors of `commands`.
PlanProfile summarise(std::string plan, std::vector<CommandTime> commands, const kernels::Ceilings& ceilings);

// The decode plan, then the prefill plan. With streams: a decode plan for each number; the model must be loaded for so
// many. With a picture: the plans of the model's vision tower.
// Errors: the device has no timestamps, the context is too short for the depth, or the model has no tower.
Result<std::vector<PlanProfile>> run_profile(Model& model, const ProfileSettings& settings,
                                             const kernels::Ceilings& ceilings);
uint64_t positions_needed(const ProfileSettings& settings);
// The sequences that the model must have: 1, or for streams at least 2.
uint32_t sequences_needed(const ProfileSettings& settings);

}  // namespace doppler::bench
