// Checks and records the past of the rows of a drafting step.
#include "kernels/step/draft_past.h"

#include <algorithm>

#include "kernels/common/tables.h"
#include "kernels/step/draft_counts.wgsl.h"
#include "kernels/step/draft_more.wgsl.h"
#include "kernels/step/kept_more.wgsl.h"
#include "kernels/step/step.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kDraftPastMostInvocations = 256;
constexpr uint32_t kMoreWords = sizeof(MoreState) / kWord;

uint32_t workgroup_of_more(const Context& ctx) {
  return workgroup_for(ctx.plan.caps(), kMoreWords, kDraftPastMostInvocations);
}

// Sequences whose past the state and the views have.
uint64_t slots_of(const Context& ctx) { return std::max(ctx.tables.sequences, 1u); }

Result<void> check_state(const Context& ctx) {
  return ctx.tables.sequences != 0 ? check_tables(ctx)
                                   : check_view(ctx.state, sizeof(StepState), "step state");
}

Result<void> dispatch_past(Context& ctx, Launch launch) {
  add_tables(launch, ctx.tables);
  if (ctx.tables.sequences != 0) {
    launch.substitutions.emplace_back("step/draft_place", "step/draft_place_many");
  }
  return dispatch(ctx, launch);
}

}  // namespace

Result<void> record(Context& ctx, const DraftCounts& op) {
  DP_CHECK(check_state(ctx));
  DP_CHECK(check_view(op.text, kTextTokens * kWord, "text of draft_counts"));
  DP_CHECK(check_view(op.counts, slots_of(ctx) * op.vocab_size * kWord, "counts of draft_counts"));
  DP_CHECK(check_view(op.recent, slots_of(ctx) * kPenaltyRing * kWord, "recent of draft_counts"));
  DP_CHECK(check_view(op.out, uint64_t{op.rows} * op.vocab_size * kWord, "out of draft_counts"));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), op.vocab_size, kDraftPastMostInvocations);
  return dispatch_past(ctx,
                       {.variant = "draft_counts.portable",
                        .entry = "step/draft_counts",
                        .layout = wgsl::draft_counts::kLayout,
                        .consts = {u32_const("WORKGROUP", workgroup), u32_const("VOCAB_SIZE", op.vocab_size),
                                   u32_const("PENALTY_RING", kPenaltyRing)},
                        .bindings = {ctx.state, op.text, op.counts, op.recent, op.out},
                        .grid = {.x = (op.vocab_size + workgroup - 1) / workgroup, .y = op.rows},
                        .fixed_bytes = 2 * uint64_t{op.rows} * op.vocab_size * kWord});
}

Result<void> record(Context& ctx, const DraftMore& op) {
  DP_CHECK(check_state(ctx));
  DP_CHECK(check_view(op.text, kTextTokens * kWord, "text of draft_more"));
  DP_CHECK(check_view(op.more, slots_of(ctx) * sizeof(MoreState), "more of draft_more"));
  DP_CHECK(check_view(op.out, op.rows * sizeof(MoreState), "out of draft_more"));
  return dispatch_past(ctx, {.variant = "draft_more.portable",
                             .entry = "step/draft_more",
                             .layout = wgsl::draft_more::kLayout,
                             .consts = {u32_const("WORKGROUP", workgroup_of_more(ctx)),
                                        u32_const("WORDS", kMoreWords), u32_const("HISTORY", kDryHistory)},
                             .bindings = {ctx.state, op.text, op.more, op.out},
                             .grid = {.x = op.rows},
                             .fixed_bytes = 2 * op.rows * sizeof(MoreState)});
}

Result<void> record(Context& ctx, const KeptMore& op) {
  DP_CHECK(check_state(ctx));
  DP_CHECK(check_view(op.past, op.rows * sizeof(MoreState), "past of kept_more"));
  DP_CHECK(check_view(op.more, slots_of(ctx) * sizeof(MoreState), "more of kept_more"));
  return dispatch_past(
      ctx, {.variant = "kept_more.portable",
            .entry = "step/kept_more",
            .layout = wgsl::kept_more::kLayout,
            .consts = {u32_const("WORKGROUP", workgroup_of_more(ctx)), u32_const("WORDS", kMoreWords)},
            .bindings = {ctx.state, op.past, op.more},
            .grid = {.x = op.rows},
            .fixed_bytes = 2 * sizeof(MoreState)});
}

}  // namespace doppler::kernels
