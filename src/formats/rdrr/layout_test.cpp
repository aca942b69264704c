// Tensors stored flat, by rows or by columns all arrive as the same matrix.
#include <gtest/gtest.h>

#include "formats/checkpoint.h"
#include "formats/file_set_native.h"
#include "formats/quant/codec.h"
#include "formats/rdrr/test_models.h"

namespace doppler::formats {
namespace {

float number_at(uint64_t row, uint64_t column) {
  return static_cast<float>(static_cast<int>((row * 7 + column * 3) % 41) - 20);
}

// Blocks of `type` with these numbers; the last one filled up with zeros.
std::vector<uint8_t> packed(DType type, std::vector<float> numbers) {
  const DTypeInfo& info = dtype_info(type);
  numbers.resize((numbers.size() + info.block_size - 1) / info.block_size * info.block_size, 0.0f);
  std::vector<uint8_t> bytes(numbers.size() / info.block_size * info.block_bytes);
  EXPECT_TRUE(quantise(type, numbers.data(), bytes.data(), numbers.size()));
  return bytes;
}

// The stored bytes of an [m, n, k] tensor, made from the definition of each layout.
std::vector<uint8_t> stored(DType type, RdrrLayout layout, uint64_t matrices, uint64_t n, uint64_t k) {
  std::vector<std::vector<float>> runs(1);
  for (uint64_t m = 0; m < matrices; ++m) {
    if (layout == RdrrLayout::kColumn) {
      for (uint64_t j = 0; j < k; ++j, runs.emplace_back()) {
        for (uint64_t i = 0; i < n; ++i) runs.back().push_back(number_at(m * n + i, j));
      }
    } else {
      for (uint64_t i = 0; i < n; ++i) {
        for (uint64_t j = 0; j < k; ++j) runs.back().push_back(number_at(m * n + i, j));
        if (layout == RdrrLayout::kRow) runs.emplace_back();
      }
    }
  }
  std::vector<uint8_t> bytes;
  for (const auto& run : runs) {
    const auto more = packed(type, run);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

struct Row {
  DType type;
  RdrrLayout layout;
  std::vector<uint64_t> shape;
  bool unpacked;
};

TEST(RdrrLayouts, AllGiveTheSameMatrix) {
  const Row rows[] = {
      {DType::kF32, RdrrLayout::kRow, {5, 7}, false},
      {DType::kF32, RdrrLayout::kFlat, {5, 7}, false},
      {DType::kF16, RdrrLayout::kColumn, {5, 7}, true},
      {DType::kQ8_0, RdrrLayout::kRow, {5, 64}, false},
      {DType::kQ8_0, RdrrLayout::kFlat, {5, 64}, false},
      {DType::kQ8_0, RdrrLayout::kRow, {5, 40}, true},     // rows padded to 64
      {DType::kQ8_0, RdrrLayout::kFlat, {8, 20}, true},    // blocks over row ends
      {DType::kQ8_0, RdrrLayout::kColumn, {40, 6}, true},  // columns padded to 64
      {DType::kQ8_0, RdrrLayout::kColumn, {3, 40, 6}, true},
  };
  for (const Row& row : rows) {
    const TemporaryFolder home;
    RdrrManifest outline = small_outline();
    outline.tensors.resize(1);
    outline.tensors[0].type = row.type;
    outline.tensors[0].layout = row.layout;
    outline.tensors[0].shape = row.shape;
    const uint64_t k = row.shape.back(), n = row.shape[row.shape.size() - 2];
    const uint64_t matrices = row.shape.size() == 3 ? row.shape[0] : 1;
    const auto writer = must(RdrrWriter::open(home / "m", outline, {}));
    ASSERT_TRUE(writer->begin_tensor(0));
    ASSERT_TRUE(writer->write(stored(row.type, row.layout, matrices, n, k)));
    ASSERT_TRUE(writer->end_tensor());
    ASSERT_TRUE(writer->add_asset(kRdrrGgufMetadata, small_metadata()));
    must(writer->finish());

    const auto model = must(run_now(open_checkpoint(must(open_file_set(home / "m")))));
    const TensorInfo& tensor = model->tensors()[0];
    EXPECT_EQ(tensor.type, row.unpacked ? DType::kF32 : row.type);
    const auto bytes = must(run_now(model->read_tensor(tensor)));
    std::vector<float> numbers(matrices * n * k);
    ASSERT_TRUE(dequantise(tensor.type, bytes.data(), numbers.data(), numbers.size()));
    for (uint64_t i = 0; i < numbers.size(); ++i) {
      // q8_0 of whole numbers up to 20 is off by at most half a step of 20/127.
      ASSERT_NEAR(numbers[i], number_at(i / k, i % k), 0.08)
          << rdrr_layout_name(row.layout) << " number " << i;
    }
    // Any part, read by itself, equals that part of the whole.
    for (const auto& [offset, count] :
         {std::pair<uint64_t, uint64_t>{3, 50}, {41, 77}, {bytes.size() - 9, 9}}) {
      const auto part = must(run_now(model->file(tensor.file).read(tensor.offset + offset, count)));
      EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + static_cast<ptrdiff_t>(offset)));
    }
  }
}

}  // namespace
}  // namespace doppler::formats
