// Checks and records the end of a step; which of the two kernels depends on whether a token was chosen.
#include "kernels/step/step.h"

#include "kernels/common/dispatch.h"
#include "kernels/common/step_state.h"
#include "kernels/step/step_advance.wgsl.h"
#include "kernels/step/step_token.wgsl.h"

namespace doppler::kernels {

Result<void> record(Context& ctx, const Step& op) {
  DP_CHECK(check_view(ctx.state, sizeof(StepState), "step state"));
  if (!op.token.valid()) {
    return dispatch(ctx, {.variant = "step.advance",
                          .entry = "step/step_advance",
                          .layout = wgsl::step_advance::kLayout,
                          .bindings = {ctx.state},
                          .fixed_bytes = 4 * sizeof(uint32_t)});
  }
  DP_CHECK(check_view(op.token, kWord, "token of step"));
  DP_CHECK(check_view(op.ring, kTokenRing * kWord, "ring of step"));
  DP_CHECK(check_view(op.counts, op.vocab_size * kWord, "counts of step"));
  DP_CHECK(check_view(op.recent, kPenaltyRing * kWord, "recent of step"));
  return dispatch(
      ctx, {.variant = "step.token",
            .entry = "step/step_token",
            .layout = wgsl::step_token::kLayout,
            .consts = {u32_const("TOKEN_RING", kTokenRing), u32_const("PENALTY_RING", kPenaltyRing),
                       u32_const("MAX_STOP_TOKENS", kMaxStopTokens), u32_const("VOCAB_SIZE", op.vocab_size)},
            .bindings = {ctx.state, op.token, op.ring, op.counts, op.recent},
            .fixed_bytes = sizeof(StepState)});
}

}  // namespace doppler::kernels
