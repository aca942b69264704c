// The GPU's repack against formats/quant, bit for bit: every type of the file, every code and scale it can hold, rows
// that are not whole tiles, several pieces of one weight. Here because kernels may not know the file formats.
#include "kernels/linear/repack/repack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "formats/quant/codec.h"
#include "formats/quant/repack.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::model {
namespace {

using kernels::testing::for_each_variant;
using kernels::testing::KernelRun;
using kernels::testing::Random;

// Where the two-byte scales of a block begin: their exponents must not be those of infinity and NaN, which the GPU
// reads as numbers. -1: none.
struct Scales {
  int first = -1, second = -1;
};
Scales scales_of(DType type) {
  switch (type) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kMXFP4:
      return {};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108, -1};
    case DType::kQ6_K:
      return {208, -1};
    default:
      return {0, -1};
  }
}

// Any bytes, with finite scales of every size: subnormal, zero, negative.
std::vector<uint8_t> random_blocks(DType type, uint64_t rows, uint64_t k, uint64_t seed) {
  const DTypeInfo& info = dtype_info(type);
  std::vector<uint8_t> bytes(rows * (k / info.block_size) * info.block_bytes);
  Random random(seed);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  const Scales scales = scales_of(type);
  for (size_t block = 0; block < bytes.size(); block += info.block_bytes) {
    for (const int at : {scales.first, scales.second}) {
      if (at < 0) continue;
      uint8_t& high = bytes[block + static_cast<size_t>(at) + 1];
      if ((high & 0x7C) == 0x7C) high = static_cast<uint8_t>(high ^ 0x40);
      if (random.below(8) == 0) high = static_cast<uint8_t>(high & 0x80);  // subnormal
      if (random.below(16) == 0) high = bytes[block + static_cast<size_t>(at)] = 0;
    }
  }
  return bytes;
}

struct Shape {
  uint32_t rows, k;
};

class RepackOnGpu : public testing::TestWithParam<kernels::RepackRow> {};

// `first` rows of the piece are written by one dispatch, the others by a second.
void check(const kernels::RepackRow& row, const kernels::Policy& policy, Shape shape, uint32_t first) {
  SCOPED_TRACE(format_text("%u x %u, %u rows first", shape.rows, shape.k, first));
  const std::vector<uint8_t> blocks = random_blocks(row.from, shape.rows, shape.k, shape.rows * 31 + shape.k);
  const size_t row_bytes = blocks.size() / shape.rows;
  const WeightFormat to = *dtype_info(row.from).tiles;
  const WeightLayout layout = weight_layout(to, shape.rows, shape.k);
  std::vector<uint8_t> want(layout.total_bytes);
  ASSERT_TRUE(formats::repack_tiles(row.from, blocks.data(), 0, shape.rows, shape.k, want.data(),
                                    want.data() + layout.plane1_offset));
  KernelRun run(policy);
  const auto raw_of = [&](size_t begin, size_t end) {
    std::vector<uint8_t> bytes(blocks.begin() + static_cast<ptrdiff_t>(begin * row_bytes),
                               blocks.begin() + static_cast<ptrdiff_t>(end * row_bytes));
    bytes.resize((bytes.size() + 3) / 4 * 4);
    return bytes;
  };
  const kernels::TensorView target = run.output(layout.total_bytes);
  const kernels::WeightPiece piece{.buffer = target, .first_row = 0, .rows = shape.rows};
  kernels::Repack op{.from = row.from, .to = to};
  op.k = shape.k;
  op.piece = piece;
  const bool recorded = run.record([&](kernels::Context& ctx) -> Result<void> {
    op.raw = run.input(raw_of(0, first));
    op.rows = first;
    DP_CHECK(kernels::record(ctx, op));
    if (first == shape.rows) return {};
    op.raw = run.input(raw_of(first, shape.rows));
    op.first_row = first;
    op.rows = shape.rows - first;
    return kernels::record(ctx, op);
  });
  if (!recorded) return;
  run.replay();
  std::vector<uint8_t> got = run.read<uint8_t>(target, layout.total_bytes);
  // Between the planes lies nothing.
  const uint64_t plane0_bytes = layout.padded_rows * layout.plane0_row_bytes;
  for (uint64_t at = plane0_bytes; at < layout.plane1_offset; ++at) got[at] = 0;
  size_t wrong = 0;
  for (size_t at = 0; at < got.size(); ++at) {
    if (got[at] == want[at]) continue;
    if (wrong++ < 4)
      ADD_FAILURE() << "byte " << at << ": " << int{got[at]} << " instead of " << int{want[at]};
  }
  EXPECT_EQ(wrong, 0u) << "of " << got.size() << " bytes";
}

TEST_P(RepackOnGpu, IsWhatTheHostMakes) {
  const kernels::RepackRow& row = GetParam();
  const uint32_t block = dtype_info(row.from).block_size;
  const uint32_t least = std::max(block, kTileRows);
  for_each_variant(kernels::repack_operation(row.from), kernels::repack_variants(row.from),
                   [&](const kernels::Policy& policy) {
                     check(row, policy, {.rows = 1, .k = least}, 1);         // a part of a tile
                     check(row, policy, {.rows = 32, .k = 3 * least}, 32);   // one tile; odd numbers of units
                     check(row, policy, {.rows = 77, .k = 9 * least}, 77);   // more units than a workgroup's
                     check(row, policy, {.rows = 129, .k = 5 * least}, 64);  // two dispatches
                     check(row, policy, {.rows = 512, .k = 512}, 512);       // many values
                   });
}

INSTANTIATE_TEST_SUITE_P(Types, RepackOnGpu,
                         testing::ValuesIn(kernels::repack_variants().begin(),
                                           kernels::repack_variants().end()),
                         [](const auto& row) { return std::string(dtype_info(row.param.from).name); });

TEST(Repack, KnowsEveryTypeThatHasTiles) {
  for (uint32_t id = 0; id < 64; ++id) {
    const DTypeInfo* type = dtype_info(id);
    if (!type) continue;
    const auto tiles = formats::tile_format(type->type, 512);
    EXPECT_EQ(!kernels::repack_variants(type->type).empty(), tiles.has_value()) << type->name;
    if (tiles) {
      EXPECT_TRUE(kernels::can_repack(type->type, *tiles)) << type->name;
    }
  }
}

TEST(Repack, RefusesWhatItCannotDo) {
  KernelRun run;
  const kernels::TensorView buffer = run.output(4096);
  kernels::Repack op{.from = DType::kF32, .to = WeightFormat::kTileF16};
  op.k = 64;
  op.rows = 1;
  op.raw = buffer;
  op.piece = {.buffer = buffer, .first_row = 0, .rows = 32};
  const auto sentence = [&] {
    const auto refused = run.try_record([&](kernels::Context& ctx) { return kernels::record(ctx, op); });
    return refused ? std::string("recorded") : refused.error().sentence();
  };
  EXPECT_EQ(sentence(), "Weights of type f32 cannot be repacked as tile_f16 on the GPU.");
  op.from = DType::kF16;
  op.first_row = 8;
  EXPECT_EQ(sentence(), "Rows 8 to 9 of repack are not whole tiles of a piece with 32.");
  op.first_row = 0;
  op.k = 48;
  EXPECT_EQ(sentence(), "Row length (48) of repack is not in whole blocks of f16.");
}

}  // namespace
}  // namespace doppler::model
