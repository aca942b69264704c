// attention of a chunk, and of a few rows, against double precision: every number of rows around a tile, chunks that
// begin inside the context, windows narrower than a tile and ones that begin before the chunk, softcap, sinks, q8.
#include "kernels/attention/attention_case.h"
#include "kernels/linear/linear.h"
#include "kernels/testing/f16_check.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kMaxRows = 70;

void expect_chunk(const AttentionCase& c, AttentionData& data, KernelRun& run, const BoundAttention& bound,
                  uint32_t pos, uint32_t rows, uint32_t max_rows, bool is_matrix) {
  SCOPED_TRACE(format_text("%u rows at %u", rows, pos));
  const auto& [op, out] = bound;
  const uint32_t n = c.n_heads * c.head_dim;
  data.store(run, op, pos + rows);
  data.store_spans(run, op, pos);
  run.overwrite(out.f32, std::vector<uint32_t>(size_t{max_rows} * n, kPoison));
  run.state.pos = pos;
  run.replay(rows);
  const std::vector<float> y = run.read<float>(out.f32, uint64_t{rows} * n);
  if (is_matrix || is_unpacked(run)) {
    AttentionData rounded = data;
    if (is_matrix) rounded.round_q(op.scale);
    EXPECT_LT(rel_l2(y, rounded.want(pos, rows, op.scale)), kMatrixBound);
  } else {
    EXPECT_LT(rel_l2(y, data.want(pos, rows, op.scale)), kBound);
  }
  const std::vector<uint32_t> all = run.read<uint32_t>(out.f32, uint64_t{max_rows} * n);
  for (size_t i = size_t{rows} * n; i < all.size(); ++i) ASSERT_EQ(all[i], kPoison) << "row past the last";
  if (c.q8) expect_f16(run.read<uint16_t>(out.f16, f16_bytes(max_rows, n) / 2), y, rows, n);
  if (c.q8) expect_q8(run.read<uint8_t>(out.q8, q8_bytes(max_rows, n)), y, max_rows, rows, n);
}

using Chunks = std::vector<std::pair<uint32_t, uint32_t>>;  // pos, rows

void expect_every_variant(const char* operation, std::span<const AttentionPrefillRow> table,
                          uint32_t max_rows, const AttentionCase& c, const Chunks& chunks) {
  AttentionData data(c, max_rows);
  for_each_variant(operation, table, [&](const Policy& policy) {
    KernelRun run(policy, max_rows);
    const BoundAttention bound = data.bind(run);
    if (!run.record([&](Context& ctx) { return record_attention(ctx, bound.op, bound.y); })) return;
    ASSERT_EQ(run.choices().front().variant, policy.forced.at(operation));
    const bool is_matrix = run.choices().front().variant.ends_with("matrix");
    for (const auto& [pos, rows] : chunks) expect_chunk(c, data, run, bound, pos, rows, max_rows, is_matrix);
  });
}

void expect_prefill(const AttentionCase& c, const Chunks& chunks) {
  expect_every_variant("attention_prefill", attention_prefill_variants(), kMaxRows, c, chunks);
}

TEST(AttentionPrefill, EveryNumberOfRows) {
  const AttentionCase c{.n_heads = 2, .n_kv_heads = 1, .head_dim = 16, .ctx_len = 192};
  Chunks chunks;
  for (uint32_t rows = 1; rows <= kMaxRows; ++rows) {
    chunks.emplace_back(0, rows);
    chunks.emplace_back(100, rows);
  }
  expect_prefill(c, chunks);
}

class AttentionPrefillTest : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionPrefillTest, EveryVariantMatchesTheOracle) {
  expect_prefill(GetParam(), {{0, 1}, {0, 37}, {0, 70}, {100, 33}, {122, 70}});
}

constexpr CacheFormat kF32 = CacheFormat::kF32;
INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionPrefillTest,
    ::testing::Values(AttentionCase{.n_heads = 4, .ctx_len = 192, .q8 = true},
                      AttentionCase{.n_heads = 2, .n_kv_heads = 2, .head_dim = 18, .ctx_len = 192},
                      AttentionCase{.n_heads = 2, .head_dim = 80, .format = kF32, .ctx_len = 192, .q8 = true},
                      AttentionCase{.n_heads = 3, .n_kv_heads = 1, .head_dim = 96, .ctx_len = 192},
                      AttentionCase{.n_heads = 8, .n_kv_heads = 1, .head_dim = 8, .ctx_len = 192},
                      AttentionCase{.n_heads = 71, .n_kv_heads = 1, .head_dim = 4, .ctx_len = 192},
                      AttentionCase{
                          .n_heads = 2, .n_kv_heads = 1, .head_dim = 128, .format = kF32, .ctx_len = 192},
                      AttentionCase{.n_heads = 2, .n_kv_heads = 1, .head_dim = 256, .ctx_len = 192},
                      AttentionCase{.n_heads = 1, .n_kv_heads = 1, .head_dim = 576, .ctx_len = 192},
                      AttentionCase{.n_heads = 1, .n_kv_heads = 1, .head_dim = 1, .ctx_len = 192}));

// Copied to f16 first; keys that tiles read and mask lie before the window.
constexpr CacheFormat kQ8_0 = CacheFormat::kQ8_0;
INSTANTIATE_TEST_SUITE_P(
    Blocks, AttentionPrefillTest,
    ::testing::Values(
        AttentionCase{.n_heads = 2, .n_kv_heads = 1, .head_dim = 64, .format = kQ8_0, .ctx_len = 192},
        AttentionCase{.n_heads = 4, .head_dim = 96, .format = kQ8_0, .ctx_len = 192, .window = 5}));

AttentionCase masks(uint32_t window, float softcap, bool sinks) {
  return {.n_heads = 4, .head_dim = 16, .ctx_len = 192, .window = window, .softcap = softcap, .sinks = sinks};
}

// Logits far beyond the cap, where a careless tanh overflows.
constexpr AttentionCase kFarBeyondTheCap{
    .n_heads = 2, .head_dim = 16, .ctx_len = 192, .softcap = 2, .q_scale = 100};

// Logits so far apart that rows' maxima rise again and again.
constexpr AttentionCase kMaximaRise{.n_heads = 4, .head_dim = 64, .ctx_len = 192, .q_scale = 10};

INSTANTIATE_TEST_SUITE_P(Masks, AttentionPrefillTest,
                         ::testing::Values(masks(40, 0, false), masks(5, 5, false), masks(100, 0, true),
                                           masks(0, 5, true), masks(1, 5, true), kFarBeyondTheCap,
                                           kMaximaRise));

// Rows that see keys after their own: all, a window to both sides.
constexpr AttentionCase kAllAhead{.n_heads = 4, .head_dim = 15, .ctx_len = 192, .ahead = 192};
constexpr AttentionCase kWindowAhead{
    .n_heads = 2, .n_kv_heads = 1, .head_dim = 22, .format = kF32, .ctx_len = 192, .window = 7, .ahead = 6};

// The heads of vision towers: no whole fragments of the matrix units.
constexpr AttentionCase kTowerAhead{.n_heads = 4, .head_dim = 72, .ctx_len = 192, .ahead = 192};

INSTANTIATE_TEST_SUITE_P(Ahead, AttentionPrefillTest,
                         ::testing::Values(kAllAhead, kWindowAhead, kTowerAhead));

// Rows whose first and last keys a table says: windows of a vision tower, narrower and wider than a tile.
constexpr AttentionCase kNarrowSpans{.n_heads = 4, .head_dim = 16, .ctx_len = 192, .span = 7};
constexpr AttentionCase kWideSpans{
    .n_heads = 3, .n_kv_heads = 1, .head_dim = 20, .format = kF32, .ctx_len = 192, .softcap = 5, .span = 90};

constexpr AttentionCase kTowerSpans{.n_heads = 4, .head_dim = 80, .ctx_len = 192, .span = 40};

INSTANTIATE_TEST_SUITE_P(Spans, AttentionPrefillTest,
                         ::testing::Values(kNarrowSpans, kWideSpans, kTowerSpans));

// So many heads that matrix_sizes() takes its large workgroups, with two row tiles and with one.
TEST(AttentionPrefill, LargeWorkgroupsOfTheMatrixUnits) {
  const AttentionPrefillRow& row = attention_prefill_variants().front();
  ASSERT_EQ(row.kernel, PrefillKernel::kMatrix);
  if (!refuse_by_device(row.lane, row.needs, device().caps(), Policy()).empty()) return;
  const auto expect = [&](const AttentionCase& c) {
    expect_every_variant("attention_prefill", {&row, 1}, kMaxRows, c, {{0, 1}, {0, 37}, {122, 70}});
  };
  expect({.n_heads = 68, .n_kv_heads = 34, .head_dim = 128, .ctx_len = 192, .q8 = true});
  expect({.n_heads = 68, .n_kv_heads = 68, .head_dim = 80, .ctx_len = 192, .window = 50, .sinks = true});
  expect({.n_heads = 45, .n_kv_heads = 9, .head_dim = 144, .ctx_len = 192, .softcap = 5});
  expect({.n_heads = 45, .n_kv_heads = 45, .head_dim = 256, .ctx_len = 192, .window = 90, .q_scale = 10});
}

// Not those that are prefill's tiles under another name.
void expect_each_row(const AttentionCase& c, uint32_t max_rows, const Chunks& chunks) {
  std::vector<AttentionPrefillRow> table;
  for (const AttentionPrefillRow& row : attention_skinny_variants()) {
    if (row.kernel == PrefillKernel::kEachRow) table.push_back(row);
  }
  expect_every_variant("attention_skinny", table, max_rows, c, chunks);
}

TEST(AttentionSkinny, EveryNumberOfRowsInOneSplitAndInSeveral) {
  Chunks chunks;
  for (uint32_t rows = 1; rows <= kMaxSkinnyRows; ++rows) {
    chunks.emplace_back(0, rows);
    chunks.emplace_back(1201, rows);
  }
  expect_every_variant("attention_skinny", attention_skinny_variants(), kMaxSkinnyRows,
                       {.n_heads = 4, .n_kv_heads = 2, .head_dim = 32, .ctx_len = 1300, .q8 = true}, chunks);
}

// Rows whose last keys belong to a split that the rows before do not have.
TEST(AttentionSkinny, SplitsThatOnlyTheLaterRowsReach) {
  expect_each_row({.n_heads = 2, .n_kv_heads = 1, .head_dim = 16, .ctx_len = 600}, 9,
                  {{60, 9}, {508, 9}, {591, 9}});
}

class AttentionSkinnyTest : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionSkinnyTest, EveryVariantMatchesTheOracle) {
  expect_each_row(GetParam(), 7, {{0, 2}, {150, 7}, {693, 7}});
}

INSTANTIATE_TEST_SUITE_P(
    ShapesAndMasks, AttentionSkinnyTest,
    ::testing::Values(
        AttentionCase{.n_heads = 6, .head_dim = 18, .ctx_len = 700, .window = 400, .sinks = true},
        AttentionCase{.n_heads = 2,
                      .head_dim = 80,
                      .format = kF32,
                      .ctx_len = 700,
                      .window = 3,
                      .softcap = 5,
                      .q8 = true},
        AttentionCase{.n_heads = 4, .head_dim = 64, .format = kQ8_0, .ctx_len = 700, .window = 100},
        AttentionCase{
            .n_heads = 4, .n_kv_heads = 1, .head_dim = 128, .ctx_len = 700, .softcap = 30, .q8 = true}));

// The variant for a long context on GPUs: not tiles, since there would be only as many as heads.
TEST(AttentionSkinny, LongContextsTakeSplitsOnGpus) {
  gpu::Caps caps;
  caps.type = gpu::AdapterType::kDiscrete;
  caps.max_workgroup_bytes = 32768;
  Attention op{.n_heads = 32};
  op.cache = {.n_kv_heads = 8, .ctx_len = 8192, .head_dim = 128};
  const auto chosen = [&] {
    return resolve("attention_skinny", attention_skinny_variants(), op, "", caps, Policy())->row->name;
  };
  EXPECT_EQ(chosen(), "attention_skinny.portable.split");
  caps.f16 = caps.subgroups = caps.matrix_f16 = true;
  caps.subgroup_min = caps.subgroup_max = 32;
  EXPECT_EQ(chosen(), "attention_skinny.split");
}

}  // namespace
}  // namespace doppler::kernels::testing
