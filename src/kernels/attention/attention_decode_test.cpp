// attention of one row against double precision: every variant, positions on both sides of tiles and splits,
// windows, softcap and sinks, grouped heads, both cache formats, q8.
#include "kernels/attention/attention_case.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

class AttentionDecodeTest : public ::testing::TestWithParam<AttentionCase> {};

void expect_decode(const AttentionCase& c, const Policy& policy, AttentionData& data) {
  const uint32_t n = c.n_heads * c.head_dim;
  KernelRun run(policy);
  const auto [op, out] = data.bind(run);
  if (!run.record([&](Context& ctx) { return record_attention(ctx, op, out); })) return;
  ASSERT_EQ(run.choices().front().variant, policy.forced.at("attention_decode"));
  // Long ones first: their splits lie there when a short one is reduced.
  for (const uint32_t pos : {4000u, 500u, 199u, 189u, 0u, 1u, 31u, 32u, 33u}) {
    if (pos >= c.ctx_len) continue;
    SCOPED_TRACE(pos);
    data.store(run, op, pos + 1);
    run.state.pos = pos;
    run.replay();
    const std::vector<float> y = run.read<float>(out.f32, n);
    EXPECT_LT(rel_l2(y, data.want(pos, 1, op.scale)), is_unpacked(run) ? kMatrixBound : kBound);
    if (c.q8) expect_q8(run.read<uint8_t>(out.q8, q8_bytes(1, n)), y, 1, 1, n);
  }
}

TEST_P(AttentionDecodeTest, EveryVariantMatchesTheOracle) {
  AttentionData data(GetParam(), 1);
  for_each_variant("attention_decode", attention_decode_variants(),
                   [&](const Policy& policy) { expect_decode(GetParam(), policy, data); });
}

constexpr CacheFormat kF32 = CacheFormat::kF32;
INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionDecodeTest,
    ::testing::Values(
        AttentionCase{.ctx_len = 4096, .q8 = true}, AttentionCase{.n_heads = 4, .format = kF32, .q8 = true},
        AttentionCase{.n_heads = 4, .n_kv_heads = 4, .head_dim = 18},
        AttentionCase{.n_heads = 2, .head_dim = 80, .q8 = true},
        AttentionCase{.n_heads = 3, .n_kv_heads = 1, .head_dim = 96, .format = kF32, .q8 = true},
        AttentionCase{.n_heads = 71, .n_kv_heads = 1, .head_dim = 32, .ctx_len = 64, .q8 = true},
        AttentionCase{.n_heads = 2, .n_kv_heads = 1, .head_dim = 128},
        AttentionCase{.n_heads = 1, .n_kv_heads = 1, .head_dim = 256, .ctx_len = 40},
        AttentionCase{.n_heads = 2, .n_kv_heads = 2, .head_dim = 576, .ctx_len = 40},
        AttentionCase{.n_heads = 1, .n_kv_heads = 1, .head_dim = 1, .ctx_len = 34}));

// Rows of two scales with splits, of an odd number of scales, of more scales than one element has.
constexpr CacheFormat kQ8_0 = CacheFormat::kQ8_0;
INSTANTIATE_TEST_SUITE_P(
    Blocks, AttentionDecodeTest,
    ::testing::Values(
        AttentionCase{.format = kQ8_0, .ctx_len = 1024, .q8 = true},
        AttentionCase{
            .n_heads = 1, .n_kv_heads = 1, .head_dim = 96, .format = kQ8_0, .window = 32, .sinks = true},
        AttentionCase{.n_heads = 1, .n_kv_heads = 1, .head_dim = 576, .format = kQ8_0, .ctx_len = 200}));

// Columns that end inside a vector of four, the largest count (four parts of so many are more invocations than some
// devices have), a sink beside several splits, and (highest, sum) pairs of three heads and splits that end inside
// a vector.
INSTANTIATE_TEST_SUITE_P(
    Splits, AttentionDecodeTest,
    ::testing::Values(
        AttentionCase{.n_heads = 3, .n_kv_heads = 1, .head_dim = 7, .ctx_len = 190, .sinks = true},
        AttentionCase{.n_heads = 1, .n_kv_heads = 1, .head_dim = 1, .ctx_len = 200},
        AttentionCase{
            .n_heads = 1, .n_kv_heads = 1, .head_dim = 576, .ctx_len = 200, .sinks = true, .q8 = true}));

AttentionCase masks(uint32_t window, float softcap, bool sinks) {
  return {.n_heads = 4, .head_dim = 16, .window = window, .softcap = softcap, .sinks = sinks};
}

// Logits far beyond the cap, where a careless tanh overflows.
constexpr AttentionCase kFarBeyondTheCap{.n_heads = 2, .head_dim = 16, .softcap = 2, .q_scale = 100};

INSTANTIATE_TEST_SUITE_P(Masks, AttentionDecodeTest,
                         ::testing::Values(masks(32, 0, false), masks(0, 5, false), masks(0, 0, true),
                                           masks(7, 5, false), masks(300, 0, true), masks(0, 5, true),
                                           masks(1, 5, true), kFarBeyondTheCap));

// Logits of +100 and -100: their exp() overflows or vanishes unless the maximum is taken off first.
TEST(AttentionDecode, OutlierLogits) {
  const AttentionCase c{.n_heads = 2, .n_kv_heads = 1, .head_dim = 64};
  AttentionData data(c, 1);
  std::fill(data.q.begin(), data.q.end(), 0.0f);
  for (uint32_t head = 0; head < c.n_heads; ++head) data.q[head * 64] = head % 2 == 0 ? 8.0f : -8.0f;
  for (uint32_t key = 0; key < c.ctx_len; ++key) {
    data.keys()[key * 64] = key % 7 == 0 ? 100.0f : key % 7 == 1 ? -100.0f : key % 7 == 2 ? 99.5f : 0.25f;
  }
  for_each_variant("attention_decode", attention_decode_variants(),
                   [&](const Policy& policy) { expect_decode(c, policy, data); });
}

// A plan may run on once the cache is full (the step kernel stops it later): the last position is used again.
TEST(AttentionDecode, PositionPastTheCacheReadsTheLast) {
  const AttentionCase c{.n_heads = 2, .n_kv_heads = 1, .head_dim = 16, .ctx_len = 40, .window = 8};
  AttentionData data(c, 1);
  for_each_variant("attention_decode", attention_decode_variants(), [&](const Policy& policy) {
    KernelRun run(policy);
    const auto [op, out] = data.bind(run);
    if (!run.record([&](Context& ctx) { return record_attention(ctx, op, out); })) return;
    run.state.pos = c.ctx_len;
    run.replay();
    EXPECT_LT(rel_l2(run.read<float>(out.f32, 32), data.want(c.ctx_len, 1, op.scale)), kBound);
  });
}

TEST(AttentionDecode, SaysWhichContextFits) {
  KernelRun run;
  Attention op{.n_heads = 64, .scale = 1};
  op.cache = {.format = kF32, .n_kv_heads = 64, .ctx_len = 1u << 24, .head_dim = 512};
  const Result<void> recorded = run.try_record([&](Context& ctx) { return record_attention(ctx, op, {}); });
  ASSERT_FALSE(recorded);
  const uint64_t fits = device().caps().max_binding_bytes / (64 * 512 * 4);
  EXPECT_NE(recorded.error().sentence().find(
                format_text("a context of %llu fits.", static_cast<unsigned long long>(fits))),
            std::string::npos)
      << recorded.error().sentence();
}

TEST(AttentionDecode, RefusesHeadsThatDoNotDivide) {
  KernelRun run;
  Attention op{.n_heads = 7, .scale = 1};
  op.cache = {.n_kv_heads = 2, .ctx_len = 16, .head_dim = 64};
  const Result<void> recorded = run.try_record([&](Context& ctx) { return record_attention(ctx, op, {}); });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(), "Query heads (7) are not a multiple of kv heads (2).");
}

}  // namespace
}  // namespace doppler::kernels::testing
