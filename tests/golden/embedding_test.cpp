// Embedding models against references by Hugging Face transformers (float32, CPU, tiny random models of published
// families): states after each layer, states of every token, pooled vectors. The same holds for GGUF and RDRR files
// made of the folders. Cases are folders of tests/data/embedding_models.tar.xz. Tolerances: docs/design/testing.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "base/log.h"
#include "engine/embed.h"
#include "engine/score.h"
#include "formats/architectures/architecture.h"
#include "formats/convert/convert_native.h"
#include "formats/file_sink_native.h"
#include "formats/rdrr/test_models.h"
#include "formats/safetensors/safetensors_writer.h"
#include "formats/test_helpers.h"
#include "golden_helpers.h"
#include "model/device_model.h"
#include "model/load_estimate.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;
using formats::must;

// Small enough for every case's vocabulary.
constexpr const char* kTokenizer = R"({"added_tokens": [{"id": 0, "content": "<unk>", "special": true}],
  "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, "pre_tokenizer": null,
  "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true,
            "vocab": {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "ab": 4}, "merges": [["a", "b"]]}})";

// Two letters, and what BERT puts around a text.
constexpr uint32_t kA = 1, kB = 2, kCls = 3, kSep = 4;
constexpr const char* kPairTokenizer = R"({"added_tokens": [
    {"id": 3, "content": "[CLS]", "special": true}, {"id": 4, "content": "[SEP]", "special": true}],
  "normalizer": null, "pre_tokenizer": null,
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
    "pair": [], "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [3], "tokens": ["[CLS]"]},
                                   "[SEP]": {"id": "[SEP]", "ids": [4], "tokens": ["[SEP]"]}}},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[UNK]": 0, "a": 1, "b": 2, "[CLS]": 3, "[SEP]": 4}}})";

class EmbeddingModel : public testing::TestWithParam<const char*> {
 protected:
  static std::string folder() {
    const std::string name = GetParam();
    return (name.starts_with("xlmr") ? ENCODERS_DIR "/" : EMBEDDING_MODELS_DIR "/") + name;
  }
  static References references() { return read_references(folder(), "embedding_refs.safetensors"); }
  static std::unique_ptr<model::DeviceModel> load(const formats::Checkpoint& checkpoint, bool hidden) {
    model::RunnerOptions options{
        .policy = must(kernels::make_policy("exact")), .ctx_len = 60, .chunk = 60, .hidden = hidden};
    options.cache_format = kernels::CacheFormat::kF32;
    auto runner = gpu::run_to_completion(
        device(), model::DeviceModel::load(device(), checkpoint, std::move(options), {}));
    EXPECT_TRUE(runner) << runner.error().message();
    return runner ? std::move(*runner) : nullptr;
  }
  static void expect_embeddings(model::DeviceModel& runner, double tolerance) {
    double worst = 0;
    const References refs = references();
    const uint32_t dimensions = must(engine::checked_dimensions(runner.config(), 0));
    for (const char* prompt : {"a", "b"}) {
      const auto tokens = refs.get<uint32_t>(std::string("prompt_") + prompt);
      const auto got = gpu::run_to_completion(device(), engine::embed_tokens(runner, tokens, {}, dimensions));
      ASSERT_TRUE(got) << got.error().message();
      const double error = relative_l2(*got, refs.get<float>(std::string("embedding_") + prompt));
      EXPECT_LT(error, tolerance) << prompt;
      worst = std::max(worst, error);
    }
    record_shown(runner.config().family, {.feature = "embedding", .worst = worst});
  }
};

TEST_P(EmbeddingModel, StatesAndEmbeddingsMatch) {
  const auto checkpoint = open_golden(must(formats::open_file_set(folder())));
  const auto runner = load(*checkpoint, /*hidden=*/true);
  ASSERT_TRUE(runner);
  const References refs = references();
  const auto prompt = refs.get<uint32_t>("prompt_a");
  const auto rows = gpu::run_to_completion(device(), runner->logits(0, prompt));
  ASSERT_TRUE(rows) << rows.error().message();
  if (runner->config().pooling.dense_dims.empty()) {
    EXPECT_LT(relative_l2(rows->logits, refs.get<float>("last_hidden_a")), kExactTolerance);
  }
  const size_t hidden = runner->config().hidden_dim;
  const auto wanted = refs.get<float>("hidden_a_last");
  for (size_t layer = 0; layer <= runner->config().n_layers; ++layer) {
    const size_t last = (layer * prompt.size() + prompt.size() - 1) * hidden;
    EXPECT_LT(relative_l2(std::span(rows->hidden).subspan(last, hidden),
                          std::span(wanted).subspan(layer * hidden, hidden)),
              kExactTolerance)
        << "after layer " << layer;
  }
  expect_embeddings(*runner, kExactTolerance);
  EXPECT_EQ(runner->runner(), nullptr) << "a model that writes no text";
}

constexpr const char* kCases[] = {"qwen3_embedding", "qwen3_embedding_prefixed",
                                  "gemma_embedding", "bert_mean",
                                  "bert_cls",        "bert_prefixed",
                                  "modernbert",      "xlmr_cls"};
INSTANTIATE_TEST_SUITE_P(Models, EmbeddingModel, testing::ValuesIn(kCases),
                         [](const auto& made) { return std::string(made.param); });

// One of each architecture that GGUF has a place for; EmbeddingGemma's case has a scale of attention that it has none
// for.
class ConvertedEmbeddingModel : public EmbeddingModel {};

TEST_P(ConvertedEmbeddingModel, FilesGiveTheSameEmbeddings) {
  const formats::TemporaryFolder home;
  fs::copy(folder(), home / "hf", fs::copy_options::recursive);
  fs::remove(home / "hf/embedding_refs.safetensors");
  if (!fs::exists(home / "hf/tokenizer.json")) std::ofstream(home / "hf/tokenizer.json") << kTokenizer;
  const auto convert = [&](const char* from, const char* to, formats::OutputKind kind) {
    formats::ConvertOptions options;
    options.to = kind;
    if (kind == formats::OutputKind::kGguf) options.name = "model";
    const auto checkpoint = open_golden(must(formats::open_file_set(home / from)));
    const auto done = formats::convert_model(*checkpoint, home / to, options);
    ASSERT_TRUE(done) << done.error().message();
    const auto made = open_golden(must(formats::open_file_set(home / to)));
    const auto runner = load(*made, /*hidden=*/false);
    ASSERT_TRUE(runner);
    expect_embeddings(*runner, kExactTolerance);
  };
  convert("hf", "rdrr", formats::OutputKind::kRdrr);
  convert("hf", "model.gguf", formats::OutputKind::kGguf);
  convert("model.gguf", "rdrr_of_gguf", formats::OutputKind::kRdrr);
}

INSTANTIATE_TEST_SUITE_P(Models, ConvertedEmbeddingModel,
                         testing::Values("qwen3_embedding", "bert_prefixed", "modernbert", "xlmr_cls"),
                         [](const auto& made) { return std::string(made.param); });

// Copies that were pulled without modules.json gave other vectors without a word.
TEST(Pooling, AFolderThatDoesNotSayItIsToldOf) {
  const formats::TemporaryFolder home;
  fs::copy(EMBEDDING_MODELS_DIR "/bert_cls", home / "whole", fs::copy_options::recursive);
  fs::copy(home / "whole", home / "part", fs::copy_options::recursive);
  fs::remove(home / "part/modules.json");
  const auto warning = [&](const char* name) {
    std::string told;
    set_log_sink([&](LogLevel, std::string_view line) { told += line; });
    const auto checkpoint = open_golden(must(formats::open_file_set(home / name)));
    model::tell_of_guessed_pooling(*checkpoint, must(formats::read_config(*checkpoint)));
    set_log_sink({});
    return told;
  };
  EXPECT_EQ(warning("whole"), "");
  EXPECT_NE(warning("part").find("has no modules.json, so that its embeddings are the mean of all tokens"),
            std::string::npos);
}

// A model that scores two texts: BERT with a class of random weights after its pooler.
TEST(ClassHead, ScoresTheTokensOfBothTexts) {
  const formats::TemporaryFolder home;
  const std::string from = EMBEDDING_MODELS_DIR "/bert_prefixed";
  for (const char* name : {"config.json", "model.safetensors"}) fs::copy(from + "/" + name, home / name);
  std::ofstream(home / "tokenizer.json") << kPairTokenizer;
  const References refs = read_references(from, "embedding_refs.safetensors");
  const References stored = read_references(from, "model.safetensors");
  const std::vector<float> states = refs.get<float>("last_hidden_a");
  const std::vector<float> pooler = stored.get<float>("bert.pooler.dense.weight"),
                           pooler_bias = stored.get<float>("bert.pooler.dense.bias");
  const size_t hidden = pooler_bias.size();
  std::vector<float> classifier(hidden);
  for (size_t i = 0; i < hidden; ++i) classifier[i] = std::sin(static_cast<float>(i));
  const float bias = 0.25f;
  {
    const auto file = must(formats::FileSink::create(home / "class.safetensors"));
    const formats::SafetensorsItem items[] = {
        {"classifier.weight", DType::kF32, {1, hidden}, bytes_of(classifier)},
        {"classifier.bias", DType::kF32, {1}, bytes_of(bias)}};
    ASSERT_TRUE(formats::write_safetensors(items, {}, *file));
    ASSERT_TRUE(file->commit());
  }
  std::ofstream(home / "model.safetensors.index.json")
      << R"({"weight_map": {"bert.pooler.dense.bias": "model.safetensors",
             "classifier.weight": "class.safetensors", "classifier.bias": "class.safetensors"}})";

  double score = double{bias};
  for (size_t i = 0; i < hidden; ++i) {
    double sum = double{pooler_bias[i]};
    for (size_t j = 0; j < hidden; ++j) sum += double{pooler[i * hidden + j]} * double{states[j]};
    score += double{classifier[i]} * std::tanh(sum);
  }
  model::RunnerOptions options{.policy = must(kernels::make_policy("exact")), .ctx_len = 60, .chunk = 60};
  options.cache_format = kernels::CacheFormat::kF32;
  const auto loaded = gpu::run_to_completion(
      device(),
      engine::load_model(device(), must(formats::open_file_set(home / ".")), std::move(options), "", {}));
  ASSERT_TRUE(loaded) << loaded.error().message();
  model::DeviceModel& runner = *(*loaded)->runner;
  const auto score_of = [&](std::span<const uint32_t> tokens, std::span<const uint32_t> types) {
    return must(gpu::run_to_completion(device(), engine::embed_tokens(runner, tokens, types, 1)))[0];
  };
  EXPECT_NEAR(score_of(refs.get<uint32_t>("prompt_a"), {}), score, kExactTolerance);
  EXPECT_FALSE(engine::checked_dimensions(runner.config(), 0)) << "a model that gives no embeddings";

  const std::vector<uint32_t> both = {kCls, kA, kSep, kB, kSep}, types = {0, 0, 0, 1, 1};
  const auto got = gpu::run_to_completion(device(), engine::rerank_score(**loaded, "a", "b"));
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_NEAR(got->value, 1 / (1 + std::exp(-score_of(both, types))), 1e-6);
}

}  // namespace
}  // namespace doppler
