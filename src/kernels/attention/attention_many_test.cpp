// Attention of rows of several sequences, whose keys and values lie in blocks of a pool, against double precision: rows
// of pieces attended each on its own, y only in f16 tiles, and rows that rotate q and fill the cache themselves.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "kernels/attention/attention_case.h"
#include "kernels/testing/f16_check.h"
#include "kernels/testing/tables_image.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kHeads = 6, kKvHeads = 2, kHeadDim = 32, kGroup = kHeads / kKvHeads;
constexpr uint32_t kSlots = 3, kMaxRows = 7, kBlockLen = 8, kCtxLen = 200;
constexpr uint32_t kBlocks = kCtxLen / kBlockLen;
constexpr uint32_t kRow = kHeads * kHeadDim, kQkvRow = (kHeads + 2 * kKvHeads) * kHeadDim;

// The rows of this step: two decoding slots, then a piece of the third.
constexpr SlotEntry kRows[] = {{0, 150}, {1, 3}, {2, 9}, {2, 10}, {2, 11}};
constexpr uint32_t kDecoding = 2;

// Blocks that follow each other in a text do not in the pool.
uint32_t block_of(uint32_t slot, uint32_t i) { return i * kSlots + (slot + i) % kSlots; }

uint64_t place(uint32_t slot, uint32_t kv_head, uint32_t position) {
  return (uint64_t{block_of(slot, position / kBlockLen)} * kKvHeads + kv_head) * kBlockLen +
         position % kBlockLen;
}

class AttentionOfMany {
 public:
  AttentionOfMany()
      : image(StepTables{.sequences = kSlots, .rows = kMaxRows, .blocks = kBlocks, .block_len = kBlockLen}),
        q(random_floats(size_t{kMaxRows} * kRow, 1)),
        keys(halves(2)),
        values(halves(3)) {
    std::vector<uint32_t> blocks(size_t{kSlots} * kBlocks);
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      for (uint32_t i = 0; i < kBlocks; ++i) blocks[slot * kBlocks + i] = block_of(slot, i);
    }
    std::memcpy(image.bytes.data() + image.tables.blocks_table(), blocks.data(), blocks.size() * 4);
  }

  void set_rows(uint32_t rows, uint32_t single_rows) {
    image.state().rows = rows;
    image.state().single_rows = single_rows;
    for (uint32_t row = 0; row < rows; ++row) image.row(row) = kRows[row];
    if (rows == single_rows) return;
    image.request().pieces = 1;
    image.request().piece[0] = {
        .slot = kRows[single_rows].slot, .pos = kRows[single_rows].value, .rows = rows - single_rows};
  }

  Attention op(KernelRun& run) const {
    Attention made{.q = run.input(q), .n_heads = kHeads, .scale = 0.2f, .single_rows = kSlots};
    made.cache = {.n_kv_heads = kKvHeads,
                  .ctx_len = kCtxLen,
                  .head_dim = kHeadDim,
                  .blocks = kSlots * kBlocks,
                  .block_len = kBlockLen};
    made.cache.k = run.inout(keys);
    made.cache.v = run.inout(values);
    return made;
  }

  std::vector<double> want(uint32_t rows) const {
    std::vector<double> y(size_t{rows} * kRow);
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t head = 0; head < kHeads; ++head) attend(&y[row * kRow + head * kHeadDim], row, head);
    }
    return y;
  }

  TablesImage image;
  std::vector<float> q;
  std::vector<uint16_t> keys, values;

 private:
  static std::vector<uint16_t> halves(uint32_t seed) {
    std::vector<uint16_t> found;
    for (const float value :
         random_floats(size_t{kSlots} * kBlocks * kKvHeads * kBlockLen * kHeadDim, seed)) {
      found.push_back(f32_to_f16(value));
    }
    return found;
  }

  void attend(double* y, uint32_t row, uint32_t head) const {
    double sum = 0;
    for (uint32_t position = 0; position <= kRows[row].value; ++position) {
      const uint64_t at = place(kRows[row].slot, head / kGroup, position) * kHeadDim;
      double dot = 0;
      for (uint32_t d = 0; d < kHeadDim; ++d) {
        dot += double{q[row * kRow + head * kHeadDim + d]} * double{f16_to_f32(keys[at + d])};
      }
      const double weight = std::exp(dot * double{0.2f});
      sum += weight;
      for (uint32_t d = 0; d < kHeadDim; ++d) y[d] += weight * double{f16_to_f32(values[at + d])};
    }
    for (uint32_t d = 0; d < kHeadDim; ++d) y[d] /= sum;
  }
};

std::vector<AttentionPrefillRow> rows_of_their_own() {
  std::vector<AttentionPrefillRow> table;
  for (const AttentionPrefillRow& row : attention_skinny_variants()) {
    if (row.kernel == PrefillKernel::kEachRow && !row.rope) table.push_back(row);
  }
  return table;
}

void expect_rows(uint32_t rows, bool each_row) {
  AttentionOfMany many;
  many.set_rows(rows, std::min(rows, kDecoding));
  for_each_variant("attention_skinny", std::span<const AttentionPrefillRow>(rows_of_their_own()),
                   [&](const Policy& of_rows) {
                     Policy policy = of_rows;  // matrix units round q
                     policy.forced["attention_prefill"] = "attention_prefill.portable";
                     KernelRun run(policy, kMaxRows);
                     const TensorView state = run.inout(many.image.bytes);
                     Attention op = many.op(run);
                     op.each_row = each_row;
                     const TensorView y = run.output(kMaxRows * kRow * 4);
                     if (!run.record([&](Context& ctx) {
                           Context of_many = with_tables(ctx, many.image, state);
                           return record_attention(of_many, op, {.f32 = y});
                         }))
                       return;
                     run.replay(rows);
                     EXPECT_LT(rel_l2(run.read<float>(y, rows * kRow), many.want(rows)), kBound);
                   });
}

TEST(AttentionMany, RowsOfPiecesEachOnItsOwn) { expect_rows(std::size(kRows), true); }

TEST(AttentionMany, TilesForPiecesBesideDecodingRows) { expect_rows(std::size(kRows), false); }

// Attention itself writes what products on the matrix units read, with splits of the keys and without.
TEST(AttentionMany, F16AloneIsWhatF32Rounds) {
  AttentionOfMany many;
  many.set_rows(std::size(kRows), kDecoding);
  for (const uint32_t max_rows : {kMaxRows, 64u}) {
    KernelRun run({}, max_rows);
    many.image.tables.rows = max_rows;
    TablesImage image(many.image.tables);
    AttentionOfMany data;
    Attention op = data.op(run);
    op.single_rows = 0;  // of one sequence, in one block
    op.cache.blocks = 1;
    op.cache.block_len = 0;
    run.state.ctx_len = kCtxLen;
    run.state.pos = 120;
    const TensorView q = run.input(random_floats(size_t{max_rows} * kRow, 1));
    op.q = q;
    const TensorView f32 = run.output(max_rows * kRow * 4), f16 = run.output(f16_bytes(max_rows, kRow));
    ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
      DP_CHECK(record_attention(ctx, op, {.f32 = f32}));
      return record_attention(ctx, op, {.f16 = f16});
    }));
    run.replay(5);
    expect_f16(run.read<uint16_t>(f16, f16_bytes(max_rows, kRow) / 2), run.read<float>(f32, 5 * kRow), 5,
               kRow);
  }
}

struct Outcome {
  std::vector<float> y;
  std::vector<uint16_t> keys, values;
};

// With norms also gates, before q, k and v: the variant multiplies by them if it rotates, otherwise this function.
std::optional<Outcome> rotated(const char* variant, bool rotates, bool norms) {
  AttentionOfMany many;
  many.set_rows(kDecoding, kDecoding);
  Policy policy;
  policy.forced["attention_skinny"] = variant;
  KernelRun run(policy, kSlots);
  const TensorView state = run.inout(many.image.bytes);
  Attention op = many.op(run);
  op.own_sequences = true;
  std::vector<double> steps;
  for (uint32_t i = 0; i < kHeadDim / 2; ++i) steps.push_back(std::pow(1e4, -2.0 * i / kHeadDim));
  const uint32_t gates = norms ? kRow : 0, stride = gates + kQkvRow;
  const std::vector<float> qkv = random_floats(size_t{kSlots} * stride, 6);
  const RopeKv rope{.qkv = run.input(qkv),
                    .q_out = run.output(kSlots * kRow * 4),
                    .cache = op.cache,
                    .table = run.input(make_rope_table(steps)),
                    .norms = norms ? run.input(random_floats(2 * kHeadDim, 7)) : TensorView{},
                    .n_heads = kHeads,
                    .stride = stride,
                    .column = gates,
                    .rotary_dim = kHeadDim};
  op.q = rope.q_out;
  op.rope = &rope;
  if (norms && rotates) op.gate_column = 0;
  const TensorView y = run.output(kSlots * kRow * 4);
  if (!run.record([&](Context& ctx) {
        Context of_many = with_tables(ctx, many.image, state);
        return record_attention(of_many, op, {.f32 = y});
      }))
    return std::nullopt;
  run.replay(kDecoding);
  std::vector<float> values = run.read<float>(y, kDecoding * kRow);
  for (uint32_t i = 0; i < values.size() && norms && !rotates; ++i) {
    values[i] /= 1 + std::exp(-qkv[i / kRow * stride + i % kRow]);
  }
  return Outcome{.y = std::move(values),
                 .keys = run.read<uint16_t>(op.cache.k, many.keys.size()),
                 .values = run.read<uint16_t>(op.cache.v, many.values.size())};
}

// A GPU with subgroups of 32, for a variant that decodes rows of sequences.
gpu::Caps large_gpu() {
  gpu::Caps caps;
  caps.type = gpu::AdapterType::kDiscrete;
  caps.subgroups = true;
  caps.subgroup_min = caps.subgroup_max = 32;
  caps.max_invocations = caps.max_workgroup_size_x = 1024;
  caps.max_workgroup_bytes = 49152;
  return caps;
}

DecodeSizes sizes_of(std::string_view variant, uint32_t rows, uint32_t n_heads) {
  Attention op{.n_heads = n_heads};
  op.cache.ctx_len = 4096;
  op.cache.n_kv_heads = 8;
  op.cache.head_dim = 128;
  AttentionDecodeRow row =
      each_row(*std::ranges::find(attention_skinny_variants(), variant, &AttentionPrefillRow::name));
  row.rows = rows;
  return decode_sizes(row, op, large_gpu());
}

uint32_t keys_at_once(uint32_t rows, uint32_t n_heads) {
  return sizes_of("attention_skinny.split", rows, n_heads).keys;
}

TEST(AttentionMany, MoreRowsThanRunAtOnceTakeTwoKeysAtATime) {
  EXPECT_EQ(keys_at_once(32, 32), 4u);
  EXPECT_EQ(keys_at_once(64, 32), 2u);
  EXPECT_EQ(keys_at_once(64, 8), 4u);  // one query head a kv head: few registers
}

TEST(AttentionMany, RowsWithoutSplitsAreNoMoreWorkgroupsThanFillADevice) {
  constexpr std::string_view kSingle = "attention_skinny.rope.single";
  for (const uint32_t rows : {2u, 4u, 8u}) {
    EXPECT_EQ(sizes_of(kSingle, rows, 32).heads, 1u);
    EXPECT_EQ(sizes_of(kSingle, rows, 32).keys, 8u);
  }
  EXPECT_EQ(sizes_of(kSingle, 16, 32).heads, 2u);
  EXPECT_EQ(sizes_of(kSingle, 16, 32).keys, 4u);
  EXPECT_EQ(sizes_of(kSingle, 16, 32).splits, 1u);
}

TEST(AttentionMany, ContextsThatStayShortGainWhereRowsDoNotFillADevice) {
  const Policy fast;
  EXPECT_FALSE(gains_by_short_keys(fast, large_gpu(), 32, 8, 2));
  EXPECT_TRUE(gains_by_short_keys(fast, large_gpu(), 32, 8, 4));
  EXPECT_TRUE(gains_by_short_keys(fast, large_gpu(), 32, 8, 16));
  EXPECT_FALSE(gains_by_short_keys(fast, large_gpu(), 32, 8, 32));
  gpu::Caps cpu = large_gpu();
  cpu.type = gpu::AdapterType::kCpu;
  EXPECT_FALSE(gains_by_short_keys(fast, cpu, 32, 8, 4));
}

TEST(AttentionMany, RowsRotateAndFillTheCacheThemselves) {
  if (!device().caps().subgroups) GTEST_SKIP() << "this device has no subgroups";
  for (const bool norms : {false, true}) {
    const std::optional<Outcome> want = rotated("attention_skinny.portable.split", false, norms);
    for (const char* variant : {"attention_skinny.rope.split", "attention_skinny.rope.single"}) {
      SCOPED_TRACE(variant);
      const std::optional<Outcome> got = rotated(variant, true, norms);
      ASSERT_TRUE(want && got);
      const std::vector<double> y(want->y.begin(), want->y.end());
      EXPECT_LT(rel_l2(got->y, y), 1e-4);  // a cached key may round to its f16 neighbour
      EXPECT_EQ(got->values, want->values);
      size_t differ = 0;
      for (size_t i = 0; i < got->keys.size(); ++i) {
        differ += got->keys[i] != want->keys[i];
        EXPECT_NEAR(f16_to_f32(got->keys[i]), f16_to_f32(want->keys[i]), 2e-3);
      }
      EXPECT_LT(differ, kDecoding * kKvHeads * kHeadDim / 4);
    }
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
