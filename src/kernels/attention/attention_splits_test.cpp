// Attention whose splits are reduced by the product after it (AttentionChoice::leaves, SplitPartials), against
// attention and product in double precision, in one plan as a layer records them. The cache has no key of the step's
// position: the kernel writes it.
#include "kernels/attention/attention_case.h"
#include "kernels/linear/record_linear.h"
#include "kernels/linear/test_weights.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

constexpr const char* kFewSplits = "attention_decode.rope.few_splits";
// A sum in another order may put a code of the 8-bit blocks on the other side of a tie: then 1 of 127.
constexpr double kQ8Bound = 2e-3;

double bound_of(WeightFormat format) { return weight_format_info(format).quantised() ? kQ8Bound : kBound; }

Policy policy_for(WeightFormat format) {
  Policy policy;
  policy.forced["attention_decode"] = kFewSplits;
  const std::string operation = std::string("matvec.") + weight_format_info(format).name;
  policy.forced[operation] = operation + (weight_format_info(format).quantised() ? ".dp4a.tile" : ".tile");
  return policy;
}

struct Case {
  AttentionCase attention;
  std::vector<uint32_t> positions;  // a long one first: its splits lie there when a short one is reduced
  uint32_t n = 64;
  WeightFormat format = WeightFormat::kTileQ4;
};

void PrintTo(const Case& c, std::ostream* out) {
  PrintTo(c.attention, out);
  *out << ", " << c.n << " rows of " << weight_format_info(c.format).name;
}

// The operations that a layer records, and their views.
struct Layer {
  Layer(const Case& c, KernelRun& run)
      : data(c.attention, 1),
        bound(data.bind(run)),
        k(c.attention.n_heads * c.attention.head_dim),
        test_weight(random_weight(c.format, c.n, k, 1)),
        weight(upload(run, test_weight)) {
    rope.qkv = run.input(data.qkv(0));
    rope.q_out = attention.q;
    rope.cache = attention.cache;
    rope.n_heads = c.attention.n_heads;
    attention.rope = &rope;
    attention.reader_reduces = true;
  }

  // Records the attention, which must leave splits, and returns their place.
  Result<SplitPartials> record_splits(Context& ctx) const {
    DP_TRY(const AttentionChoice choice, resolve_attention(ctx, attention));
    if (!choice.leaves) return fail(ErrorKind::kInternal, "The attention leaves no splits.");
    SplitPartials left = *choice.leaves;
    left.partials = ctx.plan.scratch("partials", left.bytes());
    DP_CHECK(record(ctx, choice, attention, left));
    return left;
  }

  // Sets the step, and gives what the product should read.
  std::vector<float> step(KernelRun& run, uint32_t position) {
    run.state.pos = position;
    run.overwrite(rope.qkv, data.qkv(position));
    data.store(run, attention, position);
    const std::vector<double> y = data.want(position, 1, attention.scale);
    const std::vector<float> x(y.begin(), y.end());
    return weight_format_info(weight.format).quantised() ? through_q8(x) : x;
  }

  AttentionData data;
  BoundAttention bound;
  Attention& attention = bound.op;
  RopeKv rope;
  uint32_t k;
  TestWeight test_weight;
  Weight weight;
};

class AttentionSplitsTest : public ::testing::TestWithParam<Case> {};

TEST_P(AttentionSplitsTest, AreReducedByTheProduct) {
  const Case& c = GetParam();
  KernelRun run(policy_for(c.format));
  Layer layer(c, run);
  const std::vector<float> bias = random_floats(c.n, 2), before = random_floats(c.n, 3);
  const TensorView bias_view = run.input(bias), y = run.output(c.n * 4), sum = run.inout(before);
  ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
    EXPECT_EQ(prologue_refusal(ctx, layer.weight, PrologueKind::kSplitPartials), "");
    DP_TRY(const SplitPartials x, layer.record_splits(ctx));
    DP_CHECK(
        record_linear(ctx, Linear{.weight = layer.weight, .x = x, .bias = bias_view, .y = Store{.y = y}}));
    return record_linear(ctx, Linear{.weight = layer.weight, .x = x, .y = AddResidual{.y = sum}});
  }));
  for (const uint32_t position : c.positions) {
    SCOPED_TRACE(position);
    const std::vector<double> want = product(layer.test_weight, layer.step(run, position), 1);
    run.overwrite(sum, before);
    run.replay();
    std::vector<double> want_y = want, want_sum = want;
    for (uint32_t i = 0; i < c.n; ++i) {
      want_y[i] += bias[i];
      want_sum[i] += before[i];
    }
    EXPECT_LT(rel_l2(run.read<float>(y, c.n), want_y), bound_of(c.format));
    EXPECT_LT(rel_l2(run.read<float>(sum, c.n), want_sum), bound_of(c.format));
  }
}

// The product also adds the residual and defers the norm that follows.
class AttentionSplitsNormTest : public AttentionSplitsTest {};

TEST_P(AttentionSplitsNormTest, AreReducedByTheProductThatDefersIt) {
  const Case& c = GetParam();
  for (const bool q8 : {false, true}) {
    SCOPED_TRACE(q8);
    KernelRun run(policy_for(c.format));
    Layer layer(c, run);
    const std::vector<float> bias = random_floats(c.n, 2), before = random_floats(c.n, 3),
                             norm_weight = random_floats(c.n, 4);
    const TensorView bias_view = run.input(bias), sum = run.inout(before);
    const DeferredNorm next{.buffer = run.output(DeferredNorm::bytes(c.n, q8)),
                            .weight = run.input(norm_weight),
                            .k = c.n,
                            .eps = 1e-5f,
                            .q8 = q8};
    ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
      DP_TRY(const SplitPartials x, layer.record_splits(ctx));
      return record_linear(ctx, Linear{.weight = layer.weight,
                                       .x = x,
                                       .bias = bias_view,
                                       .y = AddResidualDeferNorm{.y = sum, .norm = next}});
    }));
    for (const uint32_t position : c.positions) {
      SCOPED_TRACE(position);
      std::vector<double> want = product(layer.test_weight, layer.step(run, position), 1);
      for (uint32_t i = 0; i < c.n; ++i) want[i] += double{before[i]} + bias[i];
      run.overwrite(sum, before);
      run.replay();
      const std::vector<float> got = run.read<float>(sum, c.n);
      EXPECT_LT(rel_l2(got, want), bound_of(c.format));
      std::vector<float> h(c.n);
      std::vector<double> squares(c.n / kQ8Block);
      for (uint32_t i = 0; i < c.n; ++i) {
        h[i] = got[i] * norm_weight[i];
        squares[i / kQ8Block] += double{got[i]} * got[i];
      }
      const uint64_t sums_at = DeferredNorm::sums_offset(c.n, q8);
      const std::vector<uint8_t> bytes = run.read<uint8_t>(next.buffer, DeferredNorm::bytes(c.n, q8));
      std::vector<float> sums(squares.size());
      std::memcpy(sums.data(), &bytes[sums_at], sums.size() * 4);
      EXPECT_LT(rel_l2(sums, squares), 1e-6);
      if (q8) {
        expect_q8(std::span(bytes).first(q8_bytes(1, c.n)), h, 1, 1, c.n);
      } else {
        std::vector<float> written(c.n);
        std::memcpy(written.data(), bytes.data(), c.n * 4);
        EXPECT_EQ(written, h);
      }
    }
  }
}

constexpr AttentionCase heads(uint32_t n_heads, uint32_t n_kv_heads, uint32_t head_dim, uint32_t ctx_len,
                              uint32_t window = 0) {
  return {.n_heads = n_heads,
          .n_kv_heads = n_kv_heads,
          .head_dim = head_dim,
          .ctx_len = ctx_len,
          .window = window};
}

// Positions on both sides of a split's end. With three heads and three splits the (highest, sum) pairs end inside a
// vector.
INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionSplitsTest,
    ::testing::Values(Case{heads(4, 1, 256, 512), {511, 0, 1, 63, 64, 200}, 96},
                      Case{heads(8, 2, 64, 512), {511, 0, 1, 63, 64, 200}},
                      Case{heads(4, 1, 256, 700, 512), {699, 511, 512, 63}},
                      Case{heads(8, 2, 64, 300, 100), {299, 99, 100, 163, 5}, 64, WeightFormat::kTileQ6},
                      Case{heads(8, 4, 64, 450), {449, 300, 64}, 64, WeightFormat::kTileQ8},
                      Case{heads(3, 1, 32, 190), {189, 64, 3}, 64, WeightFormat::kTileQ5},
                      Case{heads(8, 2, 64, 300), {299, 64, 7}, 64, WeightFormat::kTileF16},
                      Case{heads(6, 3, 32, 190), {189, 64, 3}, 64, WeightFormat::kTileBF16},
                      Case{heads(8, 2, 256, 200), {199, 127, 128}}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionSplitsNormTest,
    ::testing::Values(Case{heads(8, 2, 64, 512), {511, 0, 64}, 96},
                      Case{heads(3, 1, 32, 190), {189, 64, 3}, 64, WeightFormat::kTileF16}));

std::string refusal(const std::function<void(Attention&)>& change,
                    const AttentionCase& of = heads(4, 1, 32, 256)) {
  KernelRun run(policy_for(WeightFormat::kTileQ4));
  Layer layer({of, {0}}, run);
  change(layer.attention);
  const Result<void> recorded = run.try_record([&](Context& ctx) -> Result<void> {
    DP_CHECK(layer.record_splits(ctx));
    return {};
  });
  return recorded ? "" : recorded.error().sentence();
}

TEST(AttentionSplits, SaysWhyThereAreNone) {
  EXPECT_EQ(refusal([](Attention& op) { op.reader_reduces = false; }),
            "Variant attention_decode.rope.few_splits was asked for but cannot be used for 4 heads on 1, "
            "head_dim 32, "
            "f16 cache of 256: what reads its result does not reduce splits.");
  EXPECT_NE(refusal([](Attention& op) { op.sinks = op.q; }).find("without sinks"), std::string::npos);
  const auto unchanged = [](Attention&) {};
  EXPECT_NE(
      refusal(unchanged, heads(16, 4, 32, 256)).find("each of 16 heads fills the device (few are up to 8)"),
      std::string::npos);
  EXPECT_NE(refusal(unchanged, heads(4, 1, 32, 1024)).find("too few for 1024 keys"), std::string::npos);
  EXPECT_EQ(refusal(unchanged), "");
}

// One split is all there is: the kernel writes y itself.
TEST(AttentionSplits, OfFewKeysAreNone) {
  KernelRun run(policy_for(WeightFormat::kTileQ4));
  Layer layer({heads(4, 1, 32, 64), {0}}, run);
  ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
    DP_TRY(const AttentionChoice choice, resolve_attention(ctx, layer.attention));
    EXPECT_FALSE(choice.leaves.has_value());
    return record(ctx, choice, layer.attention, layer.bound.y);
  }));
  layer.step(run, 40);
  run.replay();
  EXPECT_LT(rel_l2(run.read<float>(layer.bound.y.f32, 128), layer.data.want(40, 1, layer.attention.scale)),
            kBound);
}

TEST(AttentionSplits, AreTooManyBytesForLargeProducts) {
  KernelRun run(policy_for(WeightFormat::kTileQ4));
  EXPECT_TRUE(run.try_record([&](Context& ctx) -> Result<void> {
    const auto refusal_of = [&](uint32_t n, uint32_t k) {
      const Weight weight{.format = WeightFormat::kTileQ4,
                          .n = n,
                          .k = k,
                          .pieces = {{.buffer = {}, .first_row = 0, .rows = n}}};
      return prologue_refusal(ctx, weight, PrologueKind::kSplitPartials);
    };
    EXPECT_EQ(refusal_of(1152, 1024), "");  // gemma-3-1b
    EXPECT_EQ(refusal_of(2048, 2048), "");  // llama-3.2-1b
    EXPECT_NE(refusal_of(4096, 4096), "");  // llama-3.1-8b
    EXPECT_EQ(refusal_of(1160, 1024), "1160 rows are not whole tiles of 32");
    return {};
  }));
}

TEST(AttentionSplits, OtherProductsRefuseThem) {
  Policy policy = policy_for(WeightFormat::kTileQ4);
  policy.forced["matvec.tile_q4"] = "matvec.tile_q4.portable";
  KernelRun run(policy);
  Layer layer({heads(4, 1, 32, 256), {0}}, run);
  const TensorView y = run.output(256);
  const Result<void> recorded = run.try_record([&](Context& ctx) -> Result<void> {
    DP_TRY(const SplitPartials x, layer.record_splits(ctx));
    return record_linear(ctx, Linear{.weight = layer.weight, .x = x, .y = Store{.y = y}});
  });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(
      recorded.error().sentence(),
      "matvec.tile_q4.portable does not have the prologue or epilogue of test: matvec.tile_q4.portable is "
      "no product of one row in tiles.");
}

TEST(AttentionSplits, AreWhatTheCallerMustExpect) {
  KernelRun run(policy_for(WeightFormat::kTileQ4));
  Layer layer({heads(4, 1, 32, 256), {0}}, run);
  Result<void> recorded =
      run.try_record([&](Context& ctx) { return record_attention(ctx, layer.attention, layer.bound.y); });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(),
            "test: the attention variant leaves splits to its reader, and the caller expects rows.");
}

}  // namespace
}  // namespace doppler::kernels::testing
