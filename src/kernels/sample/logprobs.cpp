// logprobs.h: checks and two dispatches.
#include "kernels/sample/logprobs.h"

#include <algorithm>

#include "kernels/sample/logprobs_entry.wgsl.h"
#include "kernels/sample/logprobs_segments.wgsl.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kPartWords = 2 + 2 * kMaxLogProbs;  // sample_logprobs.wgsl

uint32_t ring_steps(const Context& ctx) { return ctx.tables.sequences == 0 ? kTokenRing : kStepRing; }
// The entries of a step in the ring. Each row of one sequence has a step of its own there.
uint32_t step_entries(const Context& ctx) { return std::max(ctx.tables.sequences, 1u); }

}  // namespace

Result<LogProbParts> record_logprob_parts(Context& ctx, const Sample& op, const SampleShape& shape) {
  const uint64_t ring_entries = uint64_t{ring_steps(ctx)} * step_entries(ctx);
  DP_CHECK(check_view(ctx.state, sizeof(StepState), "step state"));
  DP_CHECK(check_view(op.params, shape.rows * kSampleParamsStride, "params of sample"));
  DP_CHECK(check_view(op.logprobs, ring_entries * sizeof(LogProbEntry), "logprobs of sample"));
  const uint64_t rows = shape.rows, row_bytes = op.vocab_size * kWord;
  const LogProbParts made = {
      .plain = ctx.plan.scratch("sample.plain", rows * row_bytes),
      .parts = ctx.plan.scratch("sample.logprob_parts", rows * shape.segments * kPartWords * kWord)};
  Launch launch{.variant = "logprobs.segments",
                .entry = "sample/logprobs_segments",
                .layout = wgsl::logprobs_segments::kLayout,
                .consts = sample_consts(shape),
                .bindings = {ctx.state, op.params, op.logits, made.plain, made.parts}};
  launch.consts.push_back(f32_const("SOFTCAP", op.softcap));
  launch.consts.push_back(f32_const("LOGIT_SCALE", op.logit_scale));
  DP_CHECK(dispatch_rows(ctx, shape, std::move(launch), shape.segments, 2 * row_bytes));
  return made;
}

Result<void> record_logprob_entry(Context& ctx, const Sample& op, const SampleShape& shape,
                                  const LogProbParts& from) {
  Launch launch{.variant = "logprobs.entry",
                .entry = "sample/logprobs_entry",
                .layout = wgsl::logprobs_entry::kLayout,
                .consts = sample_consts(shape),
                .bindings = {ctx.state, op.params, op.token, from.plain, from.parts, op.logprobs}};
  launch.consts.push_back(u32_const("RING_STEPS", ring_steps(ctx)));
  launch.consts.push_back(u32_const("SLOTS", step_entries(ctx)));
  launch.consts.push_back(bool_const("ROWS_OF_ONE", ctx.tables.sequences == 0));
  return dispatch_rows(ctx, shape, std::move(launch), 1, shape.segments * kPartWords * kWord);
}

}  // namespace doppler::kernels
