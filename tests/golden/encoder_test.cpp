// Encoders with a Unigram tokenizer or a class head, and a reranker as a GGUF file, against references by Hugging Face
// transformers and tokenizers (make_encoders.py). Embeddings of a folder: embedding_test.cpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "engine/embed.h"
#include "engine/vocab_gguf.h"
#include "formats/convert/convert_native.h"
#include "formats/rdrr/test_models.h"
#include "formats/test_helpers.h"
#include "golden_helpers.h"
#include "model/device_model.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;
using formats::must;

// As good as any where texts are given as tokens.
constexpr const char* kTokenizer = R"({"added_tokens": [{"id": 0, "content": "<unk>", "special": true}],
  "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, "pre_tokenizer": null,
  "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true,
            "vocab": {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "ab": 4}, "merges": [["a", "b"]]}})";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

model::RunnerOptions exact(uint32_t ctx_len) {
  model::RunnerOptions options{.policy = must(kernels::make_policy("exact")),
                               .ctx_len = ctx_len,
                               .chunk = ctx_len,
                               .all_logits = true};
  options.cache_format = kernels::CacheFormat::kF32;
  return options;
}

std::unique_ptr<engine::LoadedModel> load(const std::string& path, uint32_t ctx_len = 60) {
  auto loaded = gpu::run_to_completion(
      device(), engine::load_model(device(), must(formats::open_file_set(path)), exact(ctx_len), "", {}));
  EXPECT_TRUE(loaded) << loaded.error().message();
  return loaded ? std::move(*loaded) : nullptr;
}

std::vector<float> scores_of(engine::LoadedModel& loaded, std::span<const uint32_t> tokens, uint32_t count) {
  return must(gpu::run_to_completion(device(), engine::embed_tokens(*loaded.runner, tokens, {}, count)));
}

void expect_tokens(const tokenizer::Tokenizer& tokenizer) {
  const Json wanted = must(parse_json(text_of(ENCODERS_DIR "/xlmr_cls/tokens.json"), "tokens.json"));
  for (const Json& row : wanted["texts"]) {
    const auto text = row["text"].get<std::string>();
    EXPECT_EQ(must(tokenizer.encode(text)), row["ids"].get<std::vector<int32_t>>()) << text;
  }
  for (const Json& row : wanted["pairs"]) {
    const auto first = row["first"].get<std::string>(), second = row["second"].get<std::string>();
    EXPECT_EQ(must(tokenizer.encode_pair(first, second)).ids, row["ids"].get<std::vector<int32_t>>())
        << first;
  }
}

void expect_tokens_of_gguf(const std::string& path) {
  const auto checkpoint = open_golden(must(formats::open_file_set(path)));
  expect_tokens(*must(tokenizer::Tokenizer::create(must(engine::vocab_from_gguf(*checkpoint->gguf())))));
}

// The sentence of a refusal; empty: done.
std::string to_gguf(const std::string& folder, const std::string& file) {
  const auto checkpoint = open_golden(must(formats::open_file_set(folder)));
  formats::ConvertOptions options;
  options.to = formats::OutputKind::kGguf;
  options.name = "model";
  const auto done = formats::convert_model(*checkpoint, file, options);
  return done ? "" : done.error().sentence();
}

TEST(Unigram, FoldersAndGgufFilesGiveTheSameTokens) {
  const std::string json = text_of(ENCODERS_DIR "/xlmr_cls/tokenizer.json");
  const auto tokenizer =
      must(tokenizer::Tokenizer::create(must(tokenizer::vocab_from_tokenizer_json(json, ""))));
  expect_tokens(*tokenizer);
  const std::vector<int32_t> ids = must(tokenizer->encode("The fox and the crow"));
  EXPECT_EQ(must(tokenizer->decode(ids)), "The fox and the crow");
  expect_tokens_of_gguf(ENCODERS_DIR "/xlmr_mean.gguf");
}

TEST(XlmRoberta, GgufFilesOfLlamaCppGiveTheSameEmbeddings) {
  const auto loaded = load(ENCODERS_DIR "/xlmr_mean.gguf");
  ASSERT_TRUE(loaded);
  const References refs = read_references(ENCODERS_DIR "/xlmr_cls", "embedding_refs.safetensors");
  const uint32_t dimensions = must(engine::checked_dimensions(loaded->runner->config(), 0));
  for (const std::string prompt : {"a", "b"}) {
    const auto tokens = refs.get<uint32_t>("prompt_" + prompt);
    EXPECT_LT(relative_l2(scores_of(*loaded, tokens, dimensions), refs.get<float>("mean_" + prompt)),
              kExactTolerance);
  }
}

TEST(XlmRoberta, ScoresPairs) {
  const std::string folder = ENCODERS_DIR "/xlmr_rerank";
  const References refs = read_references(folder, "embedding_refs.safetensors");
  const float score = refs.get<float>("score_a")[0];
  const formats::TemporaryFolder home;
  ASSERT_EQ(to_gguf(folder, home / "model.gguf"), "");
  expect_tokens_of_gguf(home / "model.gguf");
  for (const std::string& path : {folder, home / "model.gguf"}) {
    const auto loaded = load(path);
    ASSERT_TRUE(loaded);
    EXPECT_NEAR(scores_of(*loaded, refs.get<uint32_t>("prompt_a"), 1)[0], score, kExactTolerance);
    const auto got = gpu::run_to_completion(
        device(), engine::rerank_score(*loaded, "Who lives in the tree?", "The crow lives in the tree."));
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_NEAR(got->value, 1 / (1 + std::exp(-score)), kExactTolerance) << path;
  }
}

TEST(ModernBert, ScoresByTheFirstTokenOrByTheMean) {
  const std::string from = ENCODERS_DIR "/modernbert_rerank";
  const References refs = read_references(from, "embedding_refs.safetensors");
  for (const std::string pooling : {"cls", "mean"}) {
    const formats::TemporaryFolder home;
    fs::copy(from + "/model.safetensors", home / "model.safetensors");
    Json config = must(parse_json(text_of(from + "/config.json"), "config.json"));
    config["classifier_pooling"] = pooling;
    std::ofstream(home / "config.json") << to_text(config);
    std::ofstream(home / "tokenizer.json") << kTokenizer;
    const auto expect_score = [&](const std::string& path) {
      const auto loaded = load(path);
      ASSERT_TRUE(loaded);
      EXPECT_NEAR(scores_of(*loaded, refs.get<uint32_t>("prompt_a"), 1)[0],
                  refs.get<float>("score_" + pooling)[0], kExactTolerance)
          << path;
    };
    expect_score(home / ".");
    const std::string refusal = to_gguf(home / ".", home / "model.gguf");
    if (pooling == "mean") {
      EXPECT_EQ(refusal, "");
      expect_score(home / "model.gguf");
    } else {
      EXPECT_NE(refusal.find("has no place for the model's pooling"), std::string::npos) << refusal;
    }
  }
}

TEST(Qwen3Reranker, ScoresByTheTwoRowsThatItsGgufFileHas) {
  const std::string folder = ENCODERS_DIR "/qwen3_reranker";
  const References refs = read_references(folder, "embedding_refs.safetensors");
  const std::vector<float> wanted = refs.get<float>("score_a");
  const auto loaded = load(folder + "/model.gguf", 512);
  ASSERT_TRUE(loaded);
  EXPECT_LT(relative_l2(scores_of(*loaded, refs.get<uint32_t>("prompt_a"), 2), wanted), kExactTolerance);
  const auto got = gpu::run_to_completion(
      device(), engine::rerank_score(*loaded, "Who lives in the tree?", "The crow does."));
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_NEAR(got->value, 1 / (1 + std::exp(wanted[1] - wanted[0])), kExactTolerance);
}

}  // namespace
}  // namespace doppler
