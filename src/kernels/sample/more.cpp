// more.h: checks and dispatches.
#include "kernels/sample/more.h"

#include "kernels/sample/more_bias.wgsl.h"
#include "kernels/sample/more_draw.wgsl.h"
#include "kernels/sample/more_spread.wgsl.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kSpreadWords = 3;                                                 // more_spread.wgsl
constexpr uint32_t kListEntries = 1 + kMaxLogitBias + kMaxStopTokens + kDryHistory;  // the first: the count
constexpr uint32_t kMoreInvocations = 256;

}  // namespace

void add_more(Launch& launch) {
  launch.substitutions.emplace_back("sample/sample_bias", "sample/sample_bias_more");
  launch.substitutions.emplace_back("sample/sample_reach", "sample/sample_reach_more");
  launch.consts.push_back(u32_const("LIST_ENTRIES", kListEntries));
}

Result<TensorView> record_more_bias(Context& ctx, const Sample& op, const SampleShape& shape) {
  const uint64_t rows = shape.rows;
  DP_CHECK(check_view(op.more, rows * sizeof(MoreState), "more of sample"));
  DP_CHECK(check_view(op.breakers, rows * breaker_words(op.vocab_size) * kWord, "breakers of sample"));
  const TensorView list = ctx.plan.scratch("sample.more_bias", rows * kListEntries * 2 * kWord);
  Launch launch{.variant = "sample.more_bias",
                .entry = "sample/more_bias",
                .layout = wgsl::more_bias::kLayout,
                .bindings = {ctx.state, op.params, op.bias, op.more, op.breakers, list}};
  SampleShape one = shape;
  one.workgroup = workgroup_for(ctx.plan.caps(), kDryHistory, kMoreInvocations);
  launch.consts = sample_consts(one);
  launch.consts.push_back(u32_const("MAX_BIAS", kMaxLogitBias));
  launch.consts.push_back(u32_const("MAX_STOP_TOKENS", kMaxStopTokens));
  launch.consts.push_back(u32_const("HISTORY", kDryHistory));
  launch.consts.push_back(u32_const("LONGEST", kDryLongest));
  launch.consts.push_back(u32_const("BREAKER_WORDS", breaker_words(op.vocab_size)));
  launch.consts.push_back(u32_const("LIST_ENTRIES", kListEntries));
  DP_CHECK(dispatch_rows(ctx, shape, std::move(launch), 1, sizeof(MoreState)));
  return list;
}

Result<TensorView> record_more_spread(Context& ctx, const Sample& op, const SampleShape& shape,
                                      TensorView segment_max) {
  const TensorView spread =
      ctx.plan.scratch("sample.more_spread", uint64_t{shape.rows} * shape.segments * kSpreadWords * kWord);
  Launch launch{.variant = "sample.more_spread",
                .entry = "sample/more_spread",
                .layout = wgsl::more_spread::kLayout,
                .consts = sample_consts(shape),
                .bindings = {ctx.state, op.params, op.logits, segment_max, spread}};
  DP_CHECK(dispatch_rows(ctx, shape, std::move(launch), shape.segments, op.vocab_size * kWord));
  return spread;
}

Result<void> record_more_draw(Context& ctx, const Sample& op, const SampleShape& shape, TensorView between,
                              TensorView candidates, TensorView spread) {
  Launch launch{.variant = "sample.more_draw",
                .entry = "sample/more_draw",
                .layout = wgsl::more_draw::kLayout,
                .consts = sample_consts(shape),
                .bindings = {ctx.state, op.params, between, candidates, op.token, spread, op.more}};
  launch.consts.push_back(u32_const("HISTORY", kDryHistory));
  add_more(launch);
  return dispatch_rows(ctx, shape, std::move(launch), 1, sizeof(MoreState));
}

}  // namespace doppler::kernels
