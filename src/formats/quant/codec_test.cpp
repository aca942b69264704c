// Block codecs against reference bytes (tests/data/gguf_blocks: 16 rows of 512 random weights a type, with
// the values that the reference implementations of the types give), the quantisers' errors, and the GPU
// layouts.
#include "formats/quant/codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "base/half.h"
#include "formats/checkpoint.h"
#include "formats/file_set_native.h"
#include "formats/quant/float8.h"
#include "formats/quant/repack.h"
#include "formats/safetensors/safetensors.h"
#include "formats/test_helpers.h"

namespace doppler::formats {
namespace {

constexpr uint64_t kRows = 16, kColumns = 512;

struct Reference {
  std::vector<uint8_t> blocks;
  std::vector<float> values;
};

Reference load_reference(DType type) {
  const std::string path = std::string(GGUF_BLOCKS_DIR) + "/" + dtype_info(type).name + ".safetensors";
  const std::vector<uint8_t> bytes = read_file(path);
  const auto file = must(parse_safetensors(bytes, bytes.size(), path));
  Reference reference;
  for (const SafetensorsTensor& tensor : file.tensors) {
    const uint8_t* at = bytes.data() + tensor.offset;
    if (tensor.name == "blocks") reference.blocks.assign(at, at + tensor.bytes);
    if (tensor.name == "dequant") {
      reference.values.resize(tensor.bytes / 4);
      std::memcpy(reference.values.data(), at, tensor.bytes);
    }
  }
  return reference;
}

class EveryType : public testing::TestWithParam<DType> {};

TEST_P(EveryType, DequantisesBitExactly) {
  const Reference reference = load_reference(GetParam());
  ASSERT_EQ(reference.values.size(), kRows * kColumns);
  ASSERT_EQ(reference.blocks.size(), bytes_of(GetParam(), kRows * kColumns));
  std::vector<float> got(kRows * kColumns);
  ASSERT_TRUE(dequantise(GetParam(), reference.blocks.data(), got.data(), got.size()));
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(reference.values[i]))
        << "weight " << i << ": " << got[i] << " instead of " << reference.values[i];
  }
}

// The meaning of a GPU layout, written from the table in base/dtype.h and independent of repack.cpp.
float device_weight(WeightFormat format, const uint8_t* plane0, const uint8_t* plane1,
                    const WeightLayout& layout, uint64_t row, uint64_t column) {
  const uint8_t* row0 = plane0 + row * layout.plane0_row_bytes;
  const uint8_t* row1 = plane1 + row * layout.plane1_row_bytes;
  const auto half = [](const uint8_t* at) { return f16_to_f32(load_le<uint16_t>(at)); };
  const uint64_t block32 = column / 32, in32 = column % 32;
  float values[256];
  switch (format) {
    case WeightFormat::kF32:
      return load_le<float>(row0 + 4 * column);
    case WeightFormat::kF16:
      return half(row0 + 2 * column);
    case WeightFormat::kBF16:
      return bf16_to_f32(load_le<uint16_t>(row0 + 2 * column));
    case WeightFormat::kQ8_0:
      return static_cast<float>(load_le<int8_t>(row0 + column)) * half(row1 + 2 * block32);
    case WeightFormat::kQ4_0: {
      const uint8_t byte = row0[16 * block32 + in32 % 16];
      return static_cast<float>((in32 < 16 ? byte & 0xF : byte >> 4) - 8) * half(row1 + 2 * block32);
    }
    case WeightFormat::kQ4_K:
      EXPECT_TRUE(dequantise(DType::kQ4_K, row0 + column / 256 * 144, values, 256));
      return values[column % 256];
    case WeightFormat::kQ5_K:
      EXPECT_TRUE(dequantise(DType::kQ5_K, row0 + column / 256 * 176, values, 256));
      return values[column % 256];
    case WeightFormat::kQ6_K: {
      uint8_t block[210];
      std::memcpy(block, row0 + column / 256 * 208, 208);
      std::memcpy(block + 208, row1 + column / 256 * 2, 2);
      EXPECT_TRUE(dequantise(DType::kQ6_K, block, values, 256));
      return values[column % 256];
    }
    default:
      ADD_FAILURE() << "tile formats are no answer of device_format(); repack_tiles_test.cpp has them";
  }
  return 0;
}

TEST_P(EveryType, DeviceLayoutHoldsTheSameWeights) {
  const Reference reference = load_reference(GetParam());
  for (const bool exact : {false, true}) {
    const WeightFormat format = must(device_format(GetParam(), exact));
    const WeightLayout layout = weight_layout(format, kRows, kColumns);
    std::vector<uint8_t> plane0(kRows * layout.plane0_row_bytes, 0xAA),
        plane1(kRows * layout.plane1_row_bytes, 0xAA);
    ASSERT_TRUE(repack_rows(GetParam(), format, reference.blocks.data(), kRows, kColumns, plane0.data(),
                            plane1.data()));
    for (uint64_t row = 0; row < kRows; ++row) {
      for (uint64_t column = 0; column < kColumns; ++column) {
        float expected = reference.values[row * kColumns + column];
        // Types without a lossless layout may round to f16, but only when not exact.
        const bool rounds = !exact && format == WeightFormat::kF16;
        if (rounds) expected = f16_to_f32(f32_to_f16(expected));
        ASSERT_EQ(device_weight(format, plane0.data(), plane1.data(), layout, row, column), expected)
            << weight_format_info(format).name << " row " << row << " column " << column;
      }
    }
    if (is_plain_copy(GetParam(), format, kColumns)) {
      EXPECT_EQ(plane0, reference.blocks);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codec, EveryType,
                         testing::Values(DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                                         DType::kQ5_1, DType::kQ8_0, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K,
                                         DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL, DType::kMXFP4),
                         [](const auto& row) { return std::string(dtype_info(row.param).name); });

// The table of the paper: the least and the largest of subnormals and of normal numbers, and what is no number.
TEST(Float8, HasTheNumbersOfItsDefinition) {
  const std::pair<uint8_t, float> kTable[] = {
      {0x00, 0.0f},   {0x01, 0x1p-9f}, {0x07, 7 * 0x1p-9f}, {0x08, 0x1p-6f},  {0x38, 1.0f},
      {0x3d, 1.625f}, {0x7e, 448.0f},  {0xb8, -1.0f},       {0x81, -0x1p-9f}, {0xfe, -448.0f}};
  for (const auto& [bits, number] : kTable) EXPECT_EQ(e4m3_to_f32(bits), number) << int{bits};
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0x7f)) && std::isnan(e4m3_to_f32(0xff)));
  EXPECT_TRUE(std::signbit(e4m3_to_f32(0x80)));
}

TEST(Repack, PadsRowsOfPlainNumbersWithZeros) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<uint8_t> plane0(weight_layout(WeightFormat::kF32, 2, 3).plane0_row_bytes * 2, 0xAA);
  ASSERT_TRUE(repack_rows(DType::kF32, WeightFormat::kF32, reinterpret_cast<const uint8_t*>(x.data()), 2, 3,
                          plane0.data(), nullptr));
  const float* rows = reinterpret_cast<const float*>(plane0.data());
  EXPECT_EQ(std::vector<float>(rows, rows + 8), (std::vector<float>{1, 2, 3, 0, 4, 5, 6, 0}));
  EXPECT_FALSE(is_plain_copy(DType::kF32, WeightFormat::kF32, 3));
  EXPECT_TRUE(is_plain_copy(DType::kQ4_K, WeightFormat::kQ4_K, 256));
  EXPECT_FALSE(is_plain_copy(DType::kQ6_K, WeightFormat::kQ6_K, 256));
}

TEST(Repack, RefusesWhatIsNoWeight) {
  EXPECT_EQ(device_format(DType::kF64, true).error().sentence(),
            "Numbers of type f64 cannot be used as weights.");
  const uint8_t byte = 0;
  uint8_t out[16];
  EXPECT_FALSE(repack_rows(DType::kI8, WeightFormat::kF32, &byte, 1, 1, out, nullptr));
  EXPECT_EQ(repack_rows(DType::kQ8_0, WeightFormat::kQ8_0, &byte, 1, 33, out, out).error().sentence(),
            "Column count (33) is not a multiple of the q8_0 block (32).");
}

// Root mean square errors relative to the data's own root mean square, as llama.cpp's quantisers (ggml commit of
// 2026-08-21) make them of the same data: gaussian, with heavy tails, and gaussian with an importance, whose error is
// weighted with it. Ours may be 2 % larger.
struct ErrorBound {
  DType type;
  double gaussian, heavy, important;
};
class Quantiser : public testing::TestWithParam<ErrorBound> {
 protected:
  static constexpr size_t kCount = 256 * 512, kColumnCount = 512;
  static constexpr double kAllowed = 1.02;

  // Student's t with 4 degrees of freedom, if `heavy`.
  static std::vector<float> data(bool heavy) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> x(kCount);
    for (float& v : x) {
      v = 0.02f * normal(random);
      float sum = 0;
      for (int i = 0; heavy && i < 4; ++i) {
        const float n = normal(random);
        sum += n * n;
      }
      if (heavy) v /= std::sqrt(sum / 4);
    }
    return x;
  }

  static double relative_error(const std::vector<float>& x, const float* importance) {
    std::vector<float> back(kCount);
    std::vector<uint8_t> blocks(bytes_of(GetParam().type, kCount));
    for (size_t row = 0; row < kCount / kColumnCount; ++row) {
      const size_t at = row * kColumnCount;
      EXPECT_TRUE(quantise(GetParam().type, x.data() + at, blocks.data() + bytes_of(GetParam().type, at),
                           kColumnCount, importance));
    }
    EXPECT_TRUE(dequantise(GetParam().type, blocks.data(), back.data(), kCount));
    double error = 0, power = 0;
    for (size_t i = 0; i < kCount; ++i) {
      const double weight = importance ? importance[i % kColumnCount] : 1;
      error += weight * (x[i] - back[i]) * (x[i] - back[i]);
      power += weight * x[i] * x[i];
    }
    return std::sqrt(error / power);
  }
};

TEST_P(Quantiser, GaussianErrorStaysWithinBound) {
  const double rmse = relative_error(data(false), nullptr);
  EXPECT_LT(rmse, kAllowed * GetParam().gaussian);
  EXPECT_GT(rmse, GetParam().gaussian / 1.2) << "the bound is too loose";
}

TEST_P(Quantiser, HeavyTailsStayWithinBound) {
  EXPECT_LT(relative_error(data(true), nullptr), kAllowed * GetParam().heavy);
}

TEST_P(Quantiser, ImportanceLowersTheErrorThatItWeighs) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> importance(kColumnCount);
  for (float& v : importance) v = std::exp(2 * normal(random));
  const std::vector<float> x = data(false);
  EXPECT_LT(relative_error(x, importance.data()), kAllowed * GetParam().important);
}

INSTANTIATE_TEST_SUITE_P(Codec, Quantiser,
                         testing::Values(ErrorBound{DType::kQ8_0, 0.005360, 0.007285, 0.005363},
                                         ErrorBound{DType::kQ4_0, 0.085943, 0.114723, 0.067968},
                                         ErrorBound{DType::kQ4_1, 0.078196, 0.093605, 0.050478},
                                         ErrorBound{DType::kQ5_0, 0.042690, 0.057670, 0.033759},
                                         ErrorBound{DType::kQ5_1, 0.037819, 0.045119, 0.024584},
                                         ErrorBound{DType::kQ2_K, 0.295575, 0.342067, 0.178265},
                                         ErrorBound{DType::kQ3_K, 0.150725, 0.182629, 0.113754},
                                         ErrorBound{DType::kQ4_K, 0.071425, 0.086301, 0.051858},
                                         ErrorBound{DType::kQ5_K, 0.036074, 0.043742, 0.027709},
                                         ErrorBound{DType::kQ6_K, 0.017801, 0.022749, 0.013931},
                                         ErrorBound{DType::kIQ4_NL, 0.076106, 0.092787, 0.059504},
                                         ErrorBound{DType::kMXFP4, 0.114280, 0.130240, 0.114473},
                                         ErrorBound{DType::kF16, 0.000208, 0.000209, 0.000209},
                                         ErrorBound{DType::kBF16, 0.00166, 0.00167, 0.00167}),
                         [](const auto& row) { return std::string(dtype_info(row.param.type).name); });

TEST(Quantise, ZerosAndOutliersSurvive) {
  for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ4_K,
                           DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL}) {
    std::vector<float> x(512, 0.0f), back(512);
    x[256] = 1000.0f;
    x[300] = -1000.0f;
    std::vector<uint8_t> blocks(bytes_of(type, 512));
    ASSERT_TRUE(quantise(type, x.data(), blocks.data(), 512));
    ASSERT_TRUE(dequantise(type, blocks.data(), back.data(), 512));
    for (size_t i = 0; i < 256; ++i) ASSERT_EQ(back[i], 0.0f) << dtype_info(type).name;
    EXPECT_NEAR(back[256], 1000, 130) << dtype_info(type).name;
    EXPECT_NEAR(back[300], -1000, 130) << dtype_info(type).name;
  }
}

// The content of a file decides only the numbers: no conversion is undefined (run under UBSan), and the blocks beside
// an infinite or undefined weight keep theirs.
TEST(Quantise, InfiniteAndUndefinedWeightsStayInTheirBlock) {
  for (const DType type :
       {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ2_K, DType::kQ3_K,
        DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL, DType::kMXFP4}) {
    std::vector<float> x(512, 0.5f), back(512);
    x[300] = std::numeric_limits<float>::infinity();
    x[420] = std::numeric_limits<float>::quiet_NaN();
    std::vector<uint8_t> blocks(bytes_of(type, 512));
    ASSERT_TRUE(quantise(type, x.data(), blocks.data(), 512));
    ASSERT_TRUE(dequantise(type, blocks.data(), back.data(), 512));
    for (size_t i = 0; i < 256; ++i) ASSERT_NEAR(back[i], 0.5f, 0.05f) << dtype_info(type).name;
  }
}

}  // namespace
}  // namespace doppler::formats
