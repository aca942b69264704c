// Tensors of 8-bit floats beside their scales, as a checkpoint gives them.
#include "formats/float8_tensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/half.h"
#include "formats/quant/float8.h"
#include "formats/safetensors/safetensors_writer.h"
#include "formats/test_helpers.h"

namespace doppler::formats {
namespace {

TEST(Float8Tensors, EmptyEightBitFloatsNeedNoScales) {
  const SafetensorsItem items[] = {{"empty", DType::kF8E4M3, {0}, {}}};
  MemorySink sink;
  ASSERT_TRUE(write_safetensors(items, {}, sink));
  EXPECT_EQ(checkpoint_refusal({{"config.json", bytes_of_text("{}")}, {"model.safetensors", sink.bytes()}}),
            "");
}

// w = code * scale, by blocks of the config's size, by rows, and as a whole; what is read from the middle on is the same.
TEST(Float8Tensors, EightBitFloatsBesideTheirScalesAreBF16) {
  constexpr uint64_t kN = 5, kK = 7, kExperts = 2;
  std::vector<uint8_t> codes(kExperts * kN * kK);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 11 % 127 + i % 2 * 128);
  const std::vector<float> scales = {0.5f, 2.0f,  3.0f,  0.01f, 7.0f,  1.5f,
                                     0.3f, 11.0f, 1e-3f, 5.0f,  0.25f, 9.0f};
  const auto bytes_of_floats = [&](size_t count) {
    std::vector<uint8_t> bytes(4 * count);
    std::memcpy(bytes.data(), scales.data(), bytes.size());
    return bytes;
  };
  const std::span<const uint8_t> one(codes.data(), kN * kK);
  const std::vector<uint8_t> blocks = bytes_of_floats(12), rows = bytes_of_floats(kN),
                             whole = bytes_of_floats(1);
  const SafetensorsItem items[] = {{"x.weight", DType::kF8E4M3, {kExperts, kN, kK}, codes},
                                   {"x.weight_scale_inv", DType::kF32, {kExperts, 3, 2}, blocks},
                                   {"y.weight", DType::kF8E4M3, {kN, kK}, one},
                                   {"y.weight_scale", DType::kF32, {kN, 1}, rows},
                                   {"y.input_scale", DType::kF32, {1}, whole},
                                   {"z.weight", DType::kF8E4M3, {kN, kK}, one},
                                   {"z.weight_scale_inv", DType::kF32, {}, whole}};
  const auto file_of = [](std::span<const SafetensorsItem> tensors) {
    MemorySink sink;
    EXPECT_TRUE(write_safetensors(tensors, {}, sink));
    return sink.bytes();
  };
  const auto config =
      bytes_of_text(R"({"model_type": "llama", "quantization_config": {"weight_block_size": [2, 4]}})");
  const auto model = must(open_in_memory({{"config.json", config}, {"model.safetensors", file_of(items)}}));
  EXPECT_EQ(model->tensors().size(), 3u);
  const auto expect = [&](const char* name, auto scale_of) {
    const TensorInfo& tensor = *model->find(name);
    EXPECT_EQ(tensor.type, DType::kBF16);
    const std::vector<uint8_t> got = must(run_now(model->read_tensor(tensor)));
    ASSERT_EQ(got.size(), tensor.bytes);
    for (size_t i = 0; i < got.size() / 2; ++i) {
      const float wanted = e4m3_to_f32(codes[i]) * scale_of(i / kK, i % kK);
      ASSERT_EQ(got[2 * i] | got[2 * i + 1] << 8, f32_to_bf16(wanted)) << name << " " << i;
    }
  };
  expect("x.weight",
         [&](size_t row, size_t column) { return scales[(row / kN * 3 + row % kN / 2) * 2 + column / 4]; });
  expect("y.weight", [&](size_t row, size_t) { return scales[row]; });
  expect("z.weight", [&](size_t, size_t) { return scales[0]; });
  EXPECT_EQ(checkpoint_refusal(
                {{"config.json", config}, {"model.safetensors", file_of(std::span(items).first(1))}}),
            "Tensor \"x.weight\" is of 8-bit floats, but there is no \"x.weight_scale_inv\" beside it.");
  const SafetensorsItem others[] = {items[0], {"x.weight_scale_inv", DType::kF32, {12}, blocks}};
  EXPECT_EQ(
      checkpoint_refusal({{"config.json", config}, {"model.safetensors", file_of(others)}}),
      "The scales \"x.weight_scale_inv\" fit the 8-bit floats neither as one, nor as one a row, nor as one a "
      "block of 2 by 4.");
}

}  // namespace
}  // namespace doppler::formats
