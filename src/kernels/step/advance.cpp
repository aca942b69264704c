// Checks and records the end of a step of many sequences. Read next: advance_rows.wgsl.
#include "kernels/step/advance.h"

#include "kernels/common/tables.h"
#include "kernels/step/advance_rows.wgsl.h"

namespace doppler::kernels {

Result<void> record(Context& ctx, const Advance& op) {
  DP_CHECK(check_tables(ctx));
  const uint64_t words = ctx.tables.sequences * sizeof(uint32_t);
  DP_CHECK(check_view(op.token, words, "token of advance"));
  DP_CHECK(check_view(op.ring, kStepRing * words, "ring of advance"));
  DP_CHECK(check_view(op.counts, op.vocab_size * words, "counts of advance"));
  DP_CHECK(check_view(op.recent, kPenaltyRing * words, "recent of advance"));
  DP_CHECK(check_view(op.tokens, words, "tokens of advance"));
  Launch launch{
      .variant = "advance.rows",
      .entry = "step/advance_rows",
      .layout = wgsl::advance_rows::kLayout,
      .consts = {u32_const("WORKGROUP", kMaxSequences), u32_const("STEP_RING", kStepRing),
                 u32_const("PENALTY_RING", kPenaltyRing), u32_const("MAX_STOP_TOKENS", kMaxStopTokens),
                 u32_const("VOCAB_SIZE", op.vocab_size)},
      .bindings = {ctx.state, op.token, op.ring, op.counts, op.recent, op.tokens},
      .fixed_bytes = ctx.tables.sequences * sizeof(SequenceRecord)};
  add_tables(launch, ctx.tables);
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
