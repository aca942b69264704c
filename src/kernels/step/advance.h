// The end of a step of many sequences. It does the work of step.h for every row that chose a token. Then it makes the
// tables of the next decode step, so that decode steps are replayed without the host. Layout: common/step_tables.h.
//
// Exactly, for entry i of `sampled`, (slot, row), with t = token[i] and every other name a field of the slot's record:
//   1. pos becomes the row's position + 1, generated += 1, and token = t, which will stand at pos.
//   2. recent and counts of the slot: point 3 of step.h.
//   3. stop_reason: point 4 of step.h.
// In the ring, step ring_index % kStepRing gets t at [slot] of each entry and kNoToken at all other slots; ring_index
// += 1, even if no row chose a token. So the host finds one entry a slot for each replayed step.
// The next step: a row for each entry of `sampled` that still runs, in order, at its pos, and all rows sampled;
// tokens[row] = t. Without any, StepState.rows and sampled_state().rows are 0, and the steps that follow write
// kNoToken. The slots of pieces whose prompt ended here take part; a host that sends a request next need not know.
#pragma once

#include "kernels/context.h"
#include "kernels/step/step.h"

namespace doppler::kernels {

struct Advance {
  TensorView token;   // u32 [sequences]: the choice of each entry of `sampled`
  TensorView ring;    // u32 [kStepRing, sequences]
  TensorView counts;  // u32 [sequences, vocab_size], by slot
  TensorView recent;  // u32 [sequences, kPenaltyRing], by slot
  TensorView tokens;  // u32 [sequences] at least: the input of each row of the next step
  uint32_t vocab_size = 0;
};
Result<void> record(Context& ctx, const Advance& op);

}  // namespace doppler::kernels
