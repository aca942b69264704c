// repack_tiles against the block codecs: the planes are read back by the table in base/dtype.h and must hold the same
// weights, exactly where no product of scales was rounded.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/half.h"
#include "formats/byte_reader.h"
#include "formats/quant/codec.h"
#include "formats/quant/repack.h"

namespace doppler::formats {
namespace {

struct TilePlanes {
  WeightFormat format;
  uint64_t units;
  std::vector<uint8_t> plane0, plane1;

  struct Weight {
    float value, bound;  // what f16 scales may change
  };
  Weight at(uint64_t row, uint64_t column) const {
    const WeightFormatInfo& info = weight_format_info(format);
    const uint64_t unit = row / 32 * units + column / 32, r = row % 32, i = column % 32;
    const auto byte = [&](uint64_t b) {
      return plane0[((unit * (info.plane0_block_bytes / 16) + b / 16) * 32 + r) * 16 + b % 16];
    };
    const auto word = [&](uint64_t p) {
      return load_le<uint32_t>(&plane1[((unit * (info.plane1_block_bytes / 4) + p) * 32 + r) * 4]);
    };
    const auto half = [&](int which) { return f16_to_f32(static_cast<uint16_t>(word(0) >> 16 * which)); };
    if (format == WeightFormat::kTileF16 || format == WeightFormat::kTileBF16) {
      const auto bits = static_cast<uint16_t>(byte(2 * i) | byte(2 * i + 1) << 8);
      return {format == WeightFormat::kTileF16 ? f16_to_f32(bits) : bf16_to_f32(bits), 0};
    }
    if (format == WeightFormat::kTileQ8)
      return {half(0) * static_cast<float>(static_cast<int8_t>(byte(i))), 0};
    const uint64_t j = i % 16 / 4, c = i % 4, high = i < 16 ? 0 : 1;
    uint32_t q = byte(i % 16) >> (4 * high) & 0xFu;
    if (format == WeightFormat::kTileQ6) {
      q |= (word(1 + high) >> (8 * c + 2 * j) & 3u) << 4;
      const float value = half(static_cast<int>(high)) * (static_cast<float>(q) - 32);
      return {value, std::fabs(value) * 0x1p-11f};
    }
    if (format == WeightFormat::kTileQ5) q |= (word(1) >> (8 * c + j + 4 * high) & 1u) << 4;
    const float product = half(0) * static_cast<float>(q);
    return {product - half(1), (std::fabs(product) + std::fabs(half(1))) * 0x1.01p-11f};
  }
};

class EveryTiledType : public testing::TestWithParam<DType> {};

TEST_P(EveryTiledType, HoldsTheSameWeights) {
  constexpr uint64_t kFirst = 5, kRows = 40, kColumns = 512;  // over two tiles, neither whole
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(kRows * kColumns);
  for (float& value : x) value = normal(random);
  std::vector<uint8_t> blocks(bytes_of(GetParam(), x.size()));
  if (can_quantise(GetParam())) {
    ASSERT_TRUE(quantise(GetParam(), x.data(), blocks.data(), x.size()));
  } else {  // any bytes, with scales that are numbers: f16 stays finite where its exponent's top bit is clear
    for (uint8_t& byte : blocks) byte = static_cast<uint8_t>(random() & 0x3F);
  }
  ASSERT_TRUE(dequantise(GetParam(), blocks.data(), x.data(), x.size()));

  const WeightFormat format = tile_format(GetParam(), kColumns).value();
  const WeightLayout layout = weight_layout(format, kFirst + kRows, kColumns);
  TilePlanes planes{.format = format, .units = kColumns / 32, .plane0 = {}, .plane1 = {}};
  planes.plane0.resize(layout.padded_rows * layout.plane0_row_bytes);
  planes.plane1.resize(layout.padded_rows * layout.plane1_row_bytes);
  ASSERT_TRUE(repack_tiles(GetParam(), blocks.data(), kFirst, kRows, kColumns, planes.plane0.data(),
                           planes.plane1.data()));
  const bool rounds_products = GetParam() == DType::kQ3_K || GetParam() == DType::kQ4_K ||
                               GetParam() == DType::kQ5_K || GetParam() == DType::kQ6_K;
  for (uint64_t row = 0; row < kFirst + kRows; ++row) {
    for (uint64_t column = 0; column < kColumns; ++column) {
      const TilePlanes::Weight weight = planes.at(row, column);
      if (row < kFirst) {
        ASSERT_EQ(weight.value, 0.0f);
        continue;
      }
      float want = x[(row - kFirst) * kColumns + column];
      if (format == WeightFormat::kTileF16) want = f16_to_f32(f32_to_f16(want));
      if (rounds_products) {
        ASSERT_NEAR(weight.value, want, weight.bound + 1e-30) << "row " << row << " column " << column;
      } else {
        ASSERT_EQ(weight.value, want) << "row " << row << " column " << column;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RepackTiles, EveryTiledType,
                         testing::Values(DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                                         DType::kQ5_1, DType::kQ8_0, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K,
                                         DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL, DType::kMXFP4),
                         [](const auto& row) { return std::string(dtype_info(row.param).name); });

TEST(RepackTiles, RefusesWhatHasNoTiles) {
  EXPECT_EQ(tile_format(DType::kF32, 64), std::nullopt);
  EXPECT_EQ(tile_format(DType::kF16, 48), std::nullopt);
  uint8_t bytes[256] = {};
  EXPECT_EQ(repack_tiles(DType::kF16, bytes, 0, 1, 48, bytes, nullptr).error().sentence(),
            "Rows of 48 weights of type f16 cannot be laid out in tiles.");
}

}  // namespace
}  // namespace doppler::formats
