// Checks and records the choice of a token: two dispatches for argmax, four for the sampling chain.
#include "kernels/sample/sample.h"

#include <algorithm>
#include <bit>

#include "kernels/sample/logprobs.h"
#include "kernels/sample/more.h"
#include "kernels/sample/sample_argmax_segments.wgsl.h"
#include "kernels/sample/sample_argmax_segments_many.wgsl.h"
#include "kernels/sample/sample_argmax_token.wgsl.h"
#include "kernels/sample/sample_argmax_token_many.wgsl.h"
#include "kernels/sample/sample_draw.wgsl.h"
#include "kernels/sample/sample_gather.wgsl.h"
#include "kernels/sample/sample_histogram.wgsl.h"
#include "kernels/sample/sample_mask.wgsl.h"
#include "kernels/sample/sample_prepare.wgsl.h"
#include "kernels/sample/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kBins = 1024;    // sample_values.wgsl
constexpr uint32_t kMetaWords = 4;  // sample_values.wgsl, without the bests of the segments

// The last dispatch is a single workgroup, so it takes all the invocations it can get.
constexpr uint32_t kDrawInvocations = 1024;
// Tokens of an invocation: its loops walk the candidates up to 14 times, and llvmpipe leaves them after 65,535 turns in
// all.
constexpr uint32_t kMostTokens = 4096;

// Integers, clean sums and workgroup memory: a subgroup row would gain nothing that a token's time shows.
constexpr Variant<Sample> kArgmaxRows[] = {{.name = "argmax.portable"}};
constexpr Variant<Sample> kSampleRows[] = {{.name = "sample.portable"}};

Result<void> record_argmax(Context& ctx, const Sample& op, const SampleShape& shape) {
  DP_TRY(const auto row, select("argmax", argmax_variants(), op, format_text("%u", op.vocab_size), ctx));
  const bool many = ctx.tables.sequences > 0 || shape.rows > 1;
  TensorView best = op.best;
  uint32_t count = op.best_count;
  if (!best.valid()) {
    count = shape.segments;
    best = ctx.plan.scratch("sample.segment_best", uint64_t{shape.rows} * count * 2 * kWord);
    Launch segments{.variant = row->name,
                    .entry = "sample/sample_argmax_segments",
                    .layout = wgsl::sample_argmax_segments::kLayout,
                    .consts = sample_consts(shape),
                    .bindings = {op.logits, best}};
    if (many) {
      segments.entry = "sample/sample_argmax_segments_many";
      segments.layout = wgsl::sample_argmax_segments_many::kLayout;
      segments.bindings = {ctx.state, op.logits, best};
    }
    DP_CHECK(dispatch_rows(ctx, shape, std::move(segments), shape.segments, op.vocab_size * kWord));
  }
  Launch token{.variant = row->name,
               .entry = "sample/sample_argmax_token",
               .layout = wgsl::sample_argmax_token::kLayout,
               .consts = {u32_const("COUNT", count), u32_const("WORKGROUP", shape.workgroup)},
               .bindings = {best, op.token}};
  if (many) {
    token.entry = "sample/sample_argmax_token_many";
    token.layout = wgsl::sample_argmax_token_many::kLayout;
    token.bindings = {ctx.state, best, op.token};
  }
  return dispatch_rows(ctx, shape, std::move(token), 1, count * 2 * kWord);
}

Result<void> record_mask(Context& ctx, const Sample& op, const SampleShape& shape) {
  if (op.best.valid()) return fail(ErrorKind::kInternal, "A mask needs all logits, not the bests of tiles.");
  DP_CHECK(check_view(op.mask, uint64_t{shape.rows} * mask_words(op.vocab_size) * kWord, "mask of sample"));
  Launch launch{.variant = "sample.mask",
                .entry = "sample/sample_mask",
                .layout = wgsl::sample_mask::kLayout,
                .consts = sample_consts(shape),
                .bindings = {ctx.state, op.mask, op.logits}};
  launch.consts.push_back(u32_const("MASK_WORDS", mask_words(op.vocab_size)));
  return dispatch_rows(ctx, shape, std::move(launch), shape.segments, op.vocab_size * kWord);
}

Result<void> record_chain(Context& ctx, const Sample& op, const SampleShape& shape) {
  const uint64_t rows = shape.rows;
  DP_CHECK(check_view(ctx.state, sizeof(StepState), "step state"));
  DP_CHECK(check_view(op.params, rows * kSampleParamsStride, "params of sample"));
  DP_CHECK(check_view(op.bias, rows * kMaxLogitBias * 2 * kWord, "bias of sample"));
  DP_CHECK(check_view(op.counts, rows * op.vocab_size * kWord, "counts of sample"));
  DP_TRY(const auto row, select("sample", sample_variants(), op, format_text("%u", op.vocab_size), ctx));

  const bool more = op.more.valid();
  TensorView bias = op.bias;
  if (more) {
    DP_TRY(bias, record_more_bias(ctx, op, shape));
  }

  const TensorView segment_max = ctx.plan.scratch("sample.segment_max", rows * shape.segments * kWord);
  const TensorView histogram = ctx.plan.scratch("sample.histogram", rows * 3 * kBins * kWord);
  const TensorView between =
      ctx.plan.scratch("sample.between", rows * (kMetaWords + 2 * shape.segments) * kWord);
  const TensorView candidates = ctx.plan.scratch("sample.candidates", rows * op.vocab_size * 2 * kWord);
  const uint64_t pass_bytes = op.vocab_size * kWord;

  Launch prepare{
      .variant = row->name,
      .entry = "sample/sample_prepare",
      .layout = wgsl::sample_prepare::kLayout,
      .consts = sample_consts(shape),
      .bindings = {ctx.state, op.params, bias, op.counts, op.logits, segment_max, histogram, between}};
  prepare.consts.push_back(f32_const("SOFTCAP", op.softcap));
  prepare.consts.push_back(f32_const("LOGIT_SCALE", op.logit_scale));
  prepare.consts.push_back(u32_const("MAX_BIAS", kMaxLogitBias));
  if (more) add_more(prepare);
  DP_CHECK(dispatch_rows(ctx, shape, std::move(prepare), shape.segments, 3 * pass_bytes));

  Launch histogram_of{.variant = row->name,
                      .entry = "sample/sample_histogram",
                      .layout = wgsl::sample_histogram::kLayout,
                      .consts = sample_consts(shape),
                      .bindings = {ctx.state, op.params, op.logits, segment_max, histogram}};
  DP_CHECK(dispatch_rows(ctx, shape, std::move(histogram_of), shape.segments, pass_bytes));
  Launch gather{.variant = row->name,
                .entry = "sample/sample_gather",
                .layout = wgsl::sample_gather::kLayout,
                .consts = sample_consts(shape),
                .bindings = {ctx.state, op.params, op.logits, segment_max, histogram, candidates, between}};
  if (more) add_more(gather);
  DP_CHECK(dispatch_rows(ctx, shape, std::move(gather), shape.segments, 2 * pass_bytes));

  const gpu::Caps& caps = ctx.plan.caps();
  SampleShape draw = shape;
  draw.workgroup =
      std::max(workgroup_for(caps, kBins, kDrawInvocations), std::bit_ceil(op.vocab_size / kMostTokens));
  // Three words a bin, two an invocation, and a few more.
  constexpr uint64_t kSmallWords = 16;
  if ((3 * kBins + 2 * draw.workgroup + kSmallWords) * kWord > caps.max_workgroup_bytes) {
    draw.workgroup = shape.workgroup;
  }
  if (more) {
    DP_TRY(const TensorView spread, record_more_spread(ctx, op, shape, segment_max));
    return record_more_draw(ctx, op, draw, between, candidates, spread);
  }
  Launch draw_of{.variant = row->name,
                 .entry = "sample/sample_draw",
                 .layout = wgsl::sample_draw::kLayout,
                 .consts = sample_consts(draw),
                 .bindings = {ctx.state, op.params, between, candidates, op.token}};
  return dispatch_rows(ctx, shape, std::move(draw_of), 1, kMetaWords * kWord);
}

Result<void> check_rows(const Sample& op) {
  if (op.rows == 1) return {};
  if (op.rows == 0) return fail(ErrorKind::kInternal, "A choice for 0 rows; at least 1 is allowed.");
  if (op.best.valid()) {
    return fail(ErrorKind::kInternal, "Choices for %u rows go without the bests of tiles.", op.rows);
  }
  return {};
}

}  // namespace

std::span<const Variant<Sample>> argmax_variants() { return kArgmaxRows; }
std::span<const Variant<Sample>> sample_variants() { return kSampleRows; }

Result<void> record(Context& ctx, const Sample& op) {
  if (op.vocab_size == 0 || op.vocab_size > kMaxVocab) {
    return fail(ErrorKind::kUnsupported, "Vocabulary of %u tokens; sampling takes 1 to %u.", op.vocab_size,
                kMaxVocab);
  }
  if (!(op.logit_scale > 0) || !(op.softcap >= 0)) {
    return fail(ErrorKind::kInvalidInput, "Logit scale (%g) must be above 0 and softcap (%g) at least 0.",
                static_cast<double>(op.logit_scale), static_cast<double>(op.softcap));
  }
  if (ctx.tables.sequences > 0) DP_CHECK(check_tables(ctx));
  DP_CHECK(check_rows(op));
  const SampleShape shape = sample_shape(ctx, op);
  const uint64_t rows = shape.rows;
  if (op.best.valid()) {
    if (!op.greedy || op.best_count == 0) {
      return fail(ErrorKind::kInternal,
                  "The %u bests of tiles are for the greedy choice only, and at least 1.", op.best_count);
    }
    DP_CHECK(check_view(op.best, rows * op.best_count * 2 * kWord, "best of sample"));
  } else {
    DP_CHECK(check_view(op.logits, rows * op.vocab_size * kWord, "logits of sample"));
  }
  DP_CHECK(check_view(op.token, rows * kWord, "token of sample"));
  LogProbParts parts;
  if (op.logprobs.valid()) {
    if (op.best.valid())
      return fail(ErrorKind::kInternal, "Log-probabilities need all logits, not the bests of tiles.");
    DP_TRY(parts, record_logprob_parts(ctx, op, shape));
  }
  if (op.more.valid() && op.greedy) {
    return fail(ErrorKind::kInternal, "The samplers of more.h were given to a greedy plan, which has none.");
  }
  if (op.mask.valid()) DP_CHECK(record_mask(ctx, op, shape));
  DP_CHECK(op.greedy ? record_argmax(ctx, op, shape) : record_chain(ctx, op, shape));
  return op.logprobs.valid() ? record_logprob_entry(ctx, op, shape, parts) : Result<void>();
}

}  // namespace doppler::kernels
