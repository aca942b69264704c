// Checks and records the end of a step of many sequences that evaluates drafts. Read next: advance_drafts.wgsl.
#include "kernels/step/advance_drafts.h"

#include "kernels/common/dispatch.h"
#include "kernels/common/tables.h"
#include "kernels/step/advance_drafts.wgsl.h"
#include "kernels/step/draft_text.h"

namespace doppler::kernels {

Result<void> record(Context& ctx, const AdvanceDrafts& op) {
  DP_CHECK(check_tables(ctx));
  if (op.rows < 2 || op.rows > kMaxSequences) {
    return fail(ErrorKind::kInternal, "advance_drafts is of %u rows; allowed is 2 to %u.", op.rows,
                kMaxSequences);
  }
  const uint64_t words = ctx.tables.sequences * kWord;
  DP_CHECK(check_view(op.choices, op.rows * kWord, "choices of advance_drafts"));
  DP_CHECK(check_view(op.text, kTextTokens * kWord, "text of advance_drafts"));
  DP_CHECK(check_view(op.ring, kStepRing * words, "ring of advance_drafts"));
  DP_CHECK(check_view(op.counts, op.vocab_size * words, "counts of advance_drafts"));
  DP_CHECK(check_view(op.recent, kPenaltyRing * words, "recent of advance_drafts"));
  Launch launch{
      .variant = "advance_drafts.rows",
      .entry = "step/advance_drafts",
      .layout = wgsl::advance_drafts::kLayout,
      .consts = {u32_const("WORKGROUP", kMaxSequences), u32_const("STEP_RING", kStepRing),
                 u32_const("PENALTY_RING", kPenaltyRing), u32_const("MAX_STOP_TOKENS", kMaxStopTokens),
                 u32_const("VOCAB_SIZE", op.vocab_size), f32_const("SIMULATED", op.simulated)},
      .bindings = {ctx.state, op.choices, op.text, op.ring, op.counts, op.recent},
      .fixed_bytes = ctx.tables.sequences * sizeof(SequenceRecord)};
  add_tables(launch, ctx.tables);
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
