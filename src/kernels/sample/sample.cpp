// Checks and records the choice of a token: two dispatches for argmax, four for the sampling chain.
#include "kernels/sample/sample.h"

#include "kernels/common/dispatch.h"
#include "kernels/sample/sample_argmax_segments.wgsl.h"
#include "kernels/sample/sample_argmax_token.wgsl.h"
#include "kernels/sample/sample_draw.wgsl.h"
#include "kernels/sample/sample_gather.wgsl.h"
#include "kernels/sample/sample_histogram.wgsl.h"
#include "kernels/sample/sample_prepare.wgsl.h"
#include "kernels/sample/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint64_t kWord = sizeof(uint32_t);
constexpr uint32_t kSegment = 1024;  // tokens of a workgroup: 126 to 256 workgroups for today's vocabularies
constexpr uint32_t kBins = 1024;     // sample_values.wgsl
constexpr uint32_t kMetaWords = 4;   // sample_values.wgsl
constexpr uint64_t kParamsBytes = 256;

constexpr uint32_t kSegmentInvocations = 256;
// The last dispatch is a single workgroup, so it takes all the invocations it can get.
constexpr uint32_t kDrawInvocations = 1024;

// Integers, clean sums and workgroup memory: a subgroup row would gain nothing that a token's time shows.
constexpr Variant<Sample> kArgmaxRows[] = {{.name = "argmax.portable"}};
constexpr Variant<Sample> kSampleRows[] = {{.name = "sample.portable"}};

struct Shape {
  uint32_t vocab_size;
  uint32_t segments;
  uint32_t workgroup;
};

Shape shape_of(const Context& ctx, const Sample& op) {
  return {.vocab_size = op.vocab_size,
          .segments = (op.vocab_size + kSegment - 1) / kSegment,
          .workgroup = workgroup_for(ctx.plan.caps(), kSegment, kSegmentInvocations)};
}

std::vector<gpu::WgslConst> shape_consts(const Shape& shape) {
  return {u32_const("VOCAB_SIZE", shape.vocab_size), u32_const("SEGMENT", kSegment),
          u32_const("SEGMENTS", shape.segments), u32_const("WORKGROUP", shape.workgroup)};
}

Result<void> record_argmax(Context& ctx, const Sample& op, const Shape& shape) {
  DP_TRY(const auto row, select("argmax", argmax_variants(), op, format_text("%u", op.vocab_size), ctx));
  TensorView best = op.best;
  uint32_t count = op.best_count;
  if (!best.valid()) {
    count = shape.segments;
    best = ctx.plan.scratch("sample.segment_best", count * 2 * kWord);
    DP_CHECK(dispatch(ctx, {.variant = row->name,
                            .entry = "sample/sample_argmax_segments",
                            .layout = wgsl::sample_argmax_segments::kLayout,
                            .consts = shape_consts(shape),
                            .bindings = {op.logits, best},
                            .grid = {.x = shape.segments},
                            .fixed_bytes = op.vocab_size * kWord}));
  }
  return dispatch(ctx, {.variant = row->name,
                        .entry = "sample/sample_argmax_token",
                        .layout = wgsl::sample_argmax_token::kLayout,
                        .consts = {u32_const("COUNT", count), u32_const("WORKGROUP", shape.workgroup)},
                        .bindings = {best, op.token},
                        .fixed_bytes = count * 2 * kWord});
}

Result<void> record_chain(Context& ctx, const Sample& op, const Shape& shape) {
  DP_CHECK(check_view(op.params, kParamsBytes, "params of sample"));
  DP_CHECK(check_view(op.bias, kMaxLogitBias * 2 * kWord, "bias of sample"));
  DP_CHECK(check_view(op.counts, op.vocab_size * kWord, "counts of sample"));
  DP_TRY(const auto row, select("sample", sample_variants(), op, format_text("%u", op.vocab_size), ctx));

  const TensorView segment_max = ctx.plan.scratch("sample.segment_max", shape.segments * kWord);
  const TensorView histogram = ctx.plan.scratch("sample.histogram", 3 * kBins * kWord);
  const TensorView between = ctx.plan.scratch("sample.between", kMetaWords * kWord);
  const TensorView candidates = ctx.plan.scratch("sample.candidates", op.vocab_size * 2 * kWord);
  const uint64_t pass_bytes = op.vocab_size * kWord;

  Launch prepare{.variant = row->name,
                 .entry = "sample/sample_prepare",
                 .layout = wgsl::sample_prepare::kLayout,
                 .consts = shape_consts(shape),
                 .bindings = {op.params, op.bias, op.counts, op.logits, segment_max, histogram, between},
                 .grid = {.x = shape.segments},
                 .fixed_bytes = 3 * pass_bytes};
  prepare.consts.push_back(f32_const("SOFTCAP", op.softcap));
  prepare.consts.push_back(f32_const("LOGIT_SCALE", op.logit_scale));
  prepare.consts.push_back(u32_const("MAX_BIAS", kMaxLogitBias));
  DP_CHECK(dispatch(ctx, prepare));

  DP_CHECK(dispatch(ctx, {.variant = row->name,
                          .entry = "sample/sample_histogram",
                          .layout = wgsl::sample_histogram::kLayout,
                          .consts = shape_consts(shape),
                          .bindings = {op.logits, segment_max, histogram},
                          .grid = {.x = shape.segments},
                          .fixed_bytes = pass_bytes}));
  DP_CHECK(dispatch(ctx, {.variant = row->name,
                          .entry = "sample/sample_gather",
                          .layout = wgsl::sample_gather::kLayout,
                          .consts = shape_consts(shape),
                          .bindings = {op.params, op.logits, segment_max, histogram, candidates, between},
                          .grid = {.x = shape.segments},
                          .fixed_bytes = 2 * pass_bytes}));

  const gpu::Caps& caps = ctx.plan.caps();
  Shape draw = shape;
  draw.workgroup = workgroup_for(caps, kBins, kDrawInvocations);
  // Three words a bin, two an invocation, and a few more.
  constexpr uint64_t kSmallWords = 16;
  if ((3 * kBins + 2 * draw.workgroup + kSmallWords) * kWord > caps.max_workgroup_bytes) {
    draw.workgroup = shape.workgroup;
  }
  return dispatch(ctx, {.variant = row->name,
                        .entry = "sample/sample_draw",
                        .layout = wgsl::sample_draw::kLayout,
                        .consts = shape_consts(draw),
                        .bindings = {ctx.state, op.params, between, candidates, op.token},
                        .fixed_bytes = kMetaWords * kWord});
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
  if (op.best.valid()) {
    if (!op.greedy || op.best_count == 0) {
      return fail(ErrorKind::kInternal,
                  "The %u bests of tiles are for the greedy choice only, and at least 1.", op.best_count);
    }
    DP_CHECK(check_view(op.best, uint64_t{op.best_count} * 2 * kWord, "best of sample"));
  } else {
    DP_CHECK(check_view(op.logits, op.vocab_size * kWord, "logits of sample"));
  }
  DP_CHECK(check_view(op.token, kWord, "token of sample"));
  const Shape shape = shape_of(ctx, op);
  return op.greedy ? record_argmax(ctx, op, shape) : record_chain(ctx, op, shape);
}

}  // namespace doppler::kernels
