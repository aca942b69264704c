// Synthetic models: complete and readable, the same from any offset, weights of the right spread, true sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/process.h"
#include "formats/architectures/gguf_metadata.h"
#include "formats/checkpoint.h"
#include "formats/quant/codec.h"
#include "formats/synth/shapes.h"
#include "formats/synth/synth_native.h"
#include "formats/test_helpers.h"

namespace doppler::formats {
namespace {

std::unique_ptr<Checkpoint> open_synthetic(std::string_view spec) {
  return must(run_now(open_checkpoint(synthetic_file_set(must(SyntheticModel::make(spec))))));
}

std::vector<float> values_of(const Checkpoint& model, std::string_view name) {
  const TensorInfo& tensor = *model.find(name);
  const auto bytes = must(run_now(model.read_tensor(tensor)));
  uint64_t count = 1;
  for (const uint64_t dim : tensor.shape) count *= dim;
  std::vector<float> values(count);
  EXPECT_TRUE(dequantise(tensor.type, bytes.data(), values.data(), count));
  return values;
}

double deviation(const std::vector<float>& values, double mean) {
  double sum = 0;
  for (const float v : values) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

class EveryMix : public testing::TestWithParam<const char*> {};

TEST_P(EveryMix, LoadsWithGaussianWeights) {
  const auto model = open_synthetic(std::string("llama-tiny:") + GetParam());
  EXPECT_EQ(must(model->gguf()->get_bool("general.synthetic")), true);
  EXPECT_NE(must(model->gguf()->get_string("general.name"))->find("synthetic"), std::string::npos);
  for (const TensorInfo& tensor : model->tensors()) {
    const std::vector<float> values = values_of(*model, tensor.name);
    for (const float v : values) ASSERT_TRUE(std::isfinite(v)) << tensor.name;
    if (tensor.shape.size() == 2) {
      const auto k = static_cast<double>(tensor.shape[1]);
      EXPECT_NEAR(deviation(values, 0) * std::sqrt(k), 1, 0.03) << tensor.name;
      std::set<std::vector<float>> rows;
      for (size_t row = 0; row < tensor.shape[0]; ++row) {
        const auto begin = values.begin() + static_cast<ptrdiff_t>(row * tensor.shape[1]);
        rows.emplace(begin, begin + static_cast<ptrdiff_t>(tensor.shape[1]));
      }
      // A row of 256 is one cell here, so some repeat; the real shapes have at least 8 cells a row.
      if (tensor.shape[1] > 256) {
        EXPECT_EQ(rows.size(), tensor.shape[0]) << tensor.name;
      }
    } else if (tensor.name != "rope_freqs.weight") {
      EXPECT_NEAR(deviation(values, 1), 0.1, 0.02) << tensor.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Synth, EveryMix,
                         testing::Values("f32", "f16", "bf16", "q8_0", "q4_0", "q4_k", "q5_k", "q6_k",
                                         "q4_k_m", "q4_k_e6", "q4_0_e8"));

TEST(Synth, AnyPieceEqualsTheWhole) {
  const auto model = must(SyntheticModel::make("llama-tiny"));
  std::vector<uint8_t> whole(model->size());
  model->fill(0, whole);
  for (uint64_t offset = 0, step = 1; offset < model->size();
       offset += step, step = (step * 7 + 11) % 50021) {
    const uint64_t count = std::min<uint64_t>(10007, model->size() - offset);
    std::vector<uint8_t> piece(count, 0xAA);
    model->fill(offset, piece);
    ASSERT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + static_cast<ptrdiff_t>(offset)))
        << offset;
  }
}

TEST(Synth, FileEqualsTheRule) {
  const auto model = must(SyntheticModel::make("llama-tiny:q8_0"));
  const std::string path =
      (std::filesystem::temp_directory_path() / ("doppler_synth_" + std::to_string(process_id()))).string();
  ASSERT_TRUE(write_synthetic(*model, path));
  std::vector<uint8_t> whole(model->size());
  model->fill(0, whole);
  EXPECT_EQ(read_file(path), whole);
  std::filesystem::remove(path);
  EXPECT_NE(
      write_synthetic(*model, "/no/such/folder/x").error().sentence().find("Cannot write /no/such/folder/x"),
      std::string::npos);
}

// Sizes of the published files of the same mix (tensor data; the vocabulary's text differs).
TEST(Synth, SizesAreTheRealOnes) {
  const struct {
    const char* spec;
    double gigabytes;
  } kRows[] = {{"llama-3.2-1b:q4_k_m", 0.808},
               {"llama-3.1-8b:q4_k_m", 4.92},
               {"llama-3.2-1b:q8_0", 1.32},
               {"llama-3.1-70b:q4_k_m", 42.5},
               {"gemma-3-1b:q4_k_m", 0.806}};
  for (const auto& row : kRows) {
    const auto model = must(SyntheticModel::make(row.spec));
    EXPECT_NEAR(static_cast<double>(model->size()) / 1e9, row.gigabytes, 0.01 * row.gigabytes) << row.spec;
  }
}

// Rows of 1,152 hold no blocks of 256: those matrices take the types of 32 that are nearest in bits.
TEST(Synth, RowsThatHoldNoLargeBlocksTakeSmallOnes) {
  const auto model = open_synthetic("gemma-3-1b:q4_k_m");
  const std::pair<const char*, DType> kTypes[] = {
      {"token_embd.weight", DType::kQ8_0},     {"blk.3.attn_v.weight", DType::kQ5_0},
      {"blk.0.attn_v.weight", DType::kQ8_0},   {"blk.0.attn_output.weight", DType::kQ4_K},
      {"blk.0.ffn_gate.weight", DType::kQ5_0}, {"blk.0.ffn_down.weight", DType::kQ6_K},
      {"blk.3.ffn_down.weight", DType::kQ4_K}};
  for (const auto& [name, type] : kTypes) {
    ASSERT_NE(model->find(name), nullptr) << name;
    EXPECT_EQ(model->find(name)->type, type) << name;
  }
  EXPECT_EQ(model->find("blk.25.attn_k_norm.weight")->shape, std::vector<uint64_t>{256});
}

TEST(Synth, VocabularyIsWhole) {
  const auto model = open_synthetic("llama-3.2-1b:q4_k_m");
  const auto tokens = *must(model->gguf()->get_strings("tokenizer.ggml.tokens"));
  ASSERT_EQ(tokens.size(), 128256u);
  const std::set<std::string_view> distinct(tokens.begin(), tokens.end());
  EXPECT_EQ(distinct.size(), tokens.size());
  EXPECT_EQ(tokens[128000], "<|begin_of_text|>");
  EXPECT_EQ(tokens[128009], "<|eot_id|>");
  const auto merges = *must(model->gguf()->get_strings("tokenizer.ggml.merges"));
  EXPECT_EQ(merges.size(), 128000u - 256u);
  for (const std::string_view merge : merges) {
    const size_t space = merge.find(' ');
    ASSERT_NE(space, std::string_view::npos);
    ASSERT_TRUE(
        distinct.contains(std::string(merge.substr(0, space)) + std::string(merge.substr(space + 1))));
  }
}

TEST(Synth, UnknownWordsSuggest) {
  EXPECT_NE(SyntheticModel::make("llama-3.2-1bb").error().sentence().find("did you mean llama-3.2-1b?"),
            std::string::npos);
  EXPECT_NE(SyntheticModel::make("llama-tiny:q9")
                .error()
                .sentence()
                .find("There is no quantisation \"q9\"; there are f32"),
            std::string::npos);
}

// Row t of the head is row t - 1 of the embedding, for this share of the tokens.
TEST(Synth, AgreeingModelsWriteAKnownText) {
  for (const double agree : {1.0, 0.75, 0.0}) {
    auto made = must(SyntheticModel::make("llama-tiny:q8_0", agree));
    EXPECT_EQ(made->name(), format_text("synthetic-llama-tiny-q8_0-agree-%g", agree));
    const auto model = must(run_now(open_checkpoint(synthetic_file_set(std::move(made)))));
    const std::vector<float> embedding = values_of(*model, "token_embd.weight");
    const std::vector<float> head = values_of(*model, "output.weight");
    ASSERT_EQ(head.size(), embedding.size());
    constexpr size_t kHidden = 256, kVocab = 1024;
    size_t same = 0;
    for (size_t t = 1; t < kVocab; ++t) {
      const auto before = embedding.begin() + static_cast<ptrdiff_t>((t - 1) * kHidden);
      same +=
          std::equal(before, before + kHidden, head.begin() + static_cast<ptrdiff_t>(t * kHidden)) ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(same) / (kVocab - 1), agree, 0.04);
  }
  EXPECT_EQ(SyntheticModel::make("llama-tiny", 1.5).error().message(),
            "The share of tokens that agree is 1.5; allowed is 0 to 1.");
}

// Llama 3.1: fast frequencies unchanged, slow ones divided by the factor, a smooth ramp between.
TEST(Synth, RopeFactorsOfLlama3) {
  const std::vector<float> factors = rope_divisors(must(shape_of("llama-3.1-8b")).config);
  ASSERT_EQ(factors.size(), 64u);
  EXPECT_EQ(factors.front(), 1.0f);
  EXPECT_EQ(factors.back(), 8.0f);
  for (size_t i = 1; i < factors.size(); ++i) EXPECT_GE(factors[i], factors[i - 1]);
}

}  // namespace
}  // namespace doppler::formats
