// The end of a step: takes the chosen token, checks the stops, writes it to the output ring and to tokens[0] for
// the next step's embedding, counts it for the penalties, and advances the step state (common/step_state.h).
// In prefill without sampling it only moves `pos` on by `rows`.
#pragma once

#include "kernels/context.h"

namespace doppler::kernels {

struct Step {
  TensorView token;    // u32 [1], the choice; invalid: no sampling in this plan, only pos += rows
  TensorView tokens;   // u32 [max_rows]: input ids of the next step
  TensorView ring;     // u32 [kTokenRing]
  TensorView counts;   // u32 [vocab_size], see sample.h; tokens leave it after penalty_window more tokens
  TensorView recent;   // u32 [kPenaltyRing]: the last tokens, so that the oldest can leave `counts`
  uint32_t vocab_size = 0;
};
inline constexpr uint32_t kPenaltyRing = 64;  // tokens back that penalties look (llama.cpp's default)
Result<void> record(Context& ctx, const Step& op);

}  // namespace doppler::kernels
