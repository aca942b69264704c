// Checks and records the begin and the end of a drafting step, and the tokens after rows.
#include "kernels/step/draft.h"

#include "kernels/common/dispatch.h"
#include "kernels/common/step_state.h"
#include "kernels/step/draft_begin.wgsl.h"
#include "kernels/step/draft_end.wgsl.h"
#include "kernels/step/given_drafts.wgsl.h"
#include "kernels/step/next_tokens.wgsl.h"
#include "kernels/step/one_sequence_only.h"
#include "kernels/step/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMostInvocations = 256;

// A word or two, or a word a row.
constexpr Variant<DraftBegin> kBeginRows[] = {{"draft_begin.portable"}};
constexpr Variant<DraftEnd> kEndRows[] = {{"draft_end.portable"}};
constexpr Variant<NextTokens> kNextTokensRows[] = {{"next_tokens.portable"}};

Result<void> check_rows(const DraftEnd& op) {
  if (op.rows >= 2 && op.rows <= kMostDraftRows) return {};
  return fail(ErrorKind::kInternal, "draft_end is of %u rows; allowed is 2 to %u.", op.rows, kMostDraftRows);
}

}  // namespace

std::span<const Variant<DraftBegin>> draft_begin_variants() { return kBeginRows; }
std::span<const Variant<DraftEnd>> draft_end_variants() { return kEndRows; }
std::span<const Variant<NextTokens>> next_tokens_variants() { return kNextTokensRows; }

Result<void> record(Context& ctx, const DraftBegin& op) {
  DP_CHECK(check_one_sequence(ctx, "draft_begin"));
  DP_CHECK(check_view(op.token, kWord, "token of draft_begin"));
  DP_CHECK(check_view(op.text, kTextTokens * kWord, "text of draft_begin"));
  DP_TRY(const auto row, select("draft_begin", draft_begin_variants(), op, "", ctx));
  return dispatch(ctx, {.variant = row->name,
                        .entry = "step/draft_begin",
                        .layout = wgsl::draft_begin::kLayout,
                        .bindings = {ctx.state, op.token, op.text},
                        .fixed_bytes = 6 * kWord});
}

Result<void> record(Context& ctx, const GivenDrafts& op) {
  DP_CHECK(check_one_sequence(ctx, "given_drafts"));
  DP_CHECK(check_view(op.text, kTextTokens * kWord, "text of given_drafts"));
  return dispatch(ctx, {.variant = "given_drafts.portable",
                        .entry = "step/given_drafts",
                        .layout = wgsl::given_drafts::kLayout,
                        .consts = {u32_const("ROWS", op.rows)},
                        .bindings = {ctx.state, op.text},
                        .fixed_bytes = 4 * kWord});
}

Result<void> record(Context& ctx, const DraftEnd& op) {
  DP_CHECK(check_one_sequence(ctx, "draft_end"));
  DP_CHECK(check_rows(op));
  DP_CHECK(check_view(op.choices, op.rows * kWord, "choices of draft_end"));
  DP_CHECK(check_view(op.text, text_words(1) * kWord, "text of draft_end"));
  if (op.next.valid()) DP_CHECK(check_view(op.next, op.rows * kWord, "next of draft_end"));
  DP_CHECK(check_view(op.token, kWord, "token of draft_end"));
  DP_CHECK(check_view(op.ring, kTokenRing * kWord, "ring of draft_end"));
  DP_CHECK(check_view(op.counts, op.vocab_size * kWord, "counts of draft_end"));
  DP_CHECK(check_view(op.recent, kPenaltyRing * kWord, "recent of draft_end"));
  DP_TRY(const auto row, select("draft_end", draft_end_variants(), op, format_text("%u rows", op.rows), ctx));
  return dispatch(
      ctx, {.variant = row->name,
            .entry = "step/draft_end",
            .layout = wgsl::draft_end::kLayout,
            .consts = {u32_const("TOKEN_RING", kTokenRing), u32_const("PENALTY_RING", kPenaltyRing),
                       u32_const("MAX_STOP_TOKENS", kMaxStopTokens), u32_const("VOCAB_SIZE", op.vocab_size),
                       u32_const("ROWS", op.rows), bool_const("HAS_NEXT", op.next.valid()),
                       f32_const("SIMULATED", op.simulated)},
            .bindings = {ctx.state, op.choices, op.text, op.next.valid() ? op.next : op.choices, op.token,
                         op.ring, op.counts, op.recent},
            .fixed_bytes = sizeof(StepState)});
}

Result<void> record(Context& ctx, const NextTokens& op) {
  DP_CHECK(check_one_sequence(ctx, "next_tokens"));
  const uint64_t rows = ctx.max_rows;
  DP_CHECK(check_view(op.tokens, (op.chosen.valid() ? rows : rows + 1) * kWord, "tokens of next_tokens"));
  if (op.chosen.valid()) DP_CHECK(check_view(op.chosen, kWord, "the chosen token of next_tokens"));
  DP_CHECK(check_view(op.out, rows * kWord, "out of next_tokens"));
  DP_TRY(const auto row, select("next_tokens", next_tokens_variants(), op, "", ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), rows, kMostInvocations);
  return dispatch(
      ctx, {.variant = row->name,
            .entry = "step/next_tokens",
            .layout = wgsl::next_tokens::kLayout,
            .consts = {u32_const("WORKGROUP", workgroup), bool_const("HAS_CHOSEN", op.chosen.valid())},
            .bindings = {ctx.state, op.tokens, op.chosen.valid() ? op.chosen : unused_binding(ctx), op.out},
            .grid = {.rows_axis = 0, .rows_per_group = workgroup},
            .bytes = 2 * kWord});
}

}  // namespace doppler::kernels
