// Published SentencePiece vocabularies as Hugging Face folders have them (tokenizer.model, or tokenizer.json with the
// merges that follow from the scores), converted to GGUF: the ids must be those of llama.cpp, of the folder itself, and
// the tokens, scores and types those of the published file.
#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_map>

#include "base/json.h"
#include "engine/vocab_gguf.h"
#include "formats/convert/hf_tokenizer.h"
#include "formats/gguf/gguf.h"
#include "formats/safetensors/safetensors_writer.h"
#include "formats/test_helpers.h"
#include "vocab_files_native.h"

namespace doppler {
namespace {

using formats::must;
using formats::run_now;

struct Published {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int64_t> types;
};

formats::GgufFile parse(std::string_view bytes) {
  const std::span<const uint8_t> span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return std::move(*must(formats::parse_gguf(span, span.size(), "vocab.gguf")).file);
}

Published read_published(const formats::GgufFile& file) {
  Published out;
  const auto tokens = must(file.get_strings("tokenizer.ggml.tokens"));
  const auto scores = must(file.get_numbers("tokenizer.ggml.scores"));
  for (const std::string_view text : *tokens) out.tokens.emplace_back(text);
  for (const double score : *scores) out.scores.push_back(static_cast<float>(score));
  out.types = *must(file.get_integers("tokenizer.ggml.token_type"));
  return out;
}

// ---- tokenizer.model

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}
void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_varint(out, field << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}
void put_number(std::string& out, uint32_t field, uint64_t value) {
  put_varint(out, field << 3);
  put_varint(out, value);
}

struct ModelKind {
  uint32_t model_type = 2;
  bool dummy_prefix = true, remove_spaces = false;
};

std::string model_file(const Published& vocab, const ModelKind& kind = {}) {
  std::string out;
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    std::string piece;
    put_bytes(piece, 1, vocab.tokens[id]);
    put_varint(piece, 2 << 3 | 5);
    piece.append(reinterpret_cast<const char*>(&vocab.scores[id]), 4);
    if (vocab.types[id] != 1) put_number(piece, 3, static_cast<uint64_t>(vocab.types[id]));
    put_bytes(out, 1, piece);
  }
  std::string trainer, normaliser;
  put_number(trainer, 3, kind.model_type);
  put_number(trainer, 35, 1);
  put_number(trainer, 43, UINT64_MAX);  // -1: no padding
  put_bytes(out, 2, trainer);
  put_number(normaliser, 3, kind.dummy_prefix ? 1 : 0);
  put_number(normaliser, 4, kind.remove_spaces ? 1 : 0);
  put_bytes(out, 3, normaliser);
  return out;
}

// ---- tokenizer.json, as transformers makes it from scores: for each token, best first, all pairs that make it

Json json_file(const Published& vocab) {
  std::unordered_map<std::string_view, size_t> ids;
  std::vector<size_t> order;
  Json texts = Json::object(), added = Json::array(), merges = Json::array();
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    texts[vocab.tokens[id]] = id;
    ids.emplace(vocab.tokens[id], id);
    if (vocab.types[id] == 1) order.push_back(id);
    if (vocab.types[id] >= 2 && vocab.types[id] <= 4) {
      added.push_back({{"id", id}, {"content", vocab.tokens[id]}, {"special", vocab.types[id] != 4}});
    }
  }
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return vocab.scores[a] != vocab.scores[b] ? vocab.scores[a] > vocab.scores[b] : a < b;
  });
  for (const size_t id : order) {
    const std::string_view whole = vocab.tokens[id];
    for (size_t at = 1; at < whole.size(); ++at) {
      const auto left = whole.substr(0, at), right = whole.substr(at);
      if (ids.contains(left) && ids.contains(right))
        merges.push_back({std::string(left), std::string(right)});
    }
  }
  return {{"added_tokens", added},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", "▁"}},
              {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}}}}},
          {"pre_tokenizer", nullptr},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
            {"special_tokens", {{"<s>", {{"ids", {1}}}}}}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", texts},
            {"merges", merges}}}};
}

// ---- the folder

using Files = formats::MemoryFileSet::Files;

Files folder_with(std::initializer_list<std::pair<const char*, std::string>> texts) {
  const float weight = 1;
  formats::MemorySink weights;
  const formats::SafetensorsItem item{
      "w", DType::kF32, {1}, {reinterpret_cast<const uint8_t*>(&weight), sizeof weight}};
  EXPECT_TRUE(formats::write_safetensors({&item, 1}, {}, weights));
  Files files = {{"model.safetensors", weights.bytes()},
                 {"config.json", formats::bytes_of_text(R"({"model_type": "llama", "bos_token_id": 1})")}};
  for (const auto& [name, text] : texts) files[name] = formats::bytes_of_text(text);
  return files;
}

struct Converted {
  std::vector<uint8_t> bytes;
  std::vector<std::string> notes;
};

Result<Converted> convert(const Files& files, size_t vocab_size) {
  static uint64_t ignored = 0;
  const auto folder =
      must(run_now(formats::open_checkpoint(std::make_unique<formats::MemoryFileSet>(files, "", &ignored))));
  formats::GgufHeader header;
  Converted out;
  auto adding = formats::add_hf_tokenizer(*folder, static_cast<uint32_t>(vocab_size), header, out.notes);
  DP_CHECK(run_now(std::move(adding)));
  out.bytes = header.build();
  return out;
}

std::string_view text_of(const std::vector<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void expect_reference_ids(const std::vector<uint8_t>& gguf, const char* name) {
  const auto made = must(tokenizer::Tokenizer::create(must(engine::vocab_from_gguf(parse(text_of(gguf))))));
  const auto vectors = read_vectors(name);
  ASSERT_GE(vectors.size(), 45u);
  for (const VocabVector& vector : vectors)
    EXPECT_EQ(must(made->encode(vector.text)), vector.ids) << vector.text;
}

class SentencePieceGguf : public testing::TestWithParam<const char*> {
 protected:
  const std::string bytes_ = read_file(std::string(VOCAB_DIR "/ggml-vocab-") + GetParam() + ".gguf");
  const formats::GgufFile file_ = parse(bytes_);
  const Published vocab_ = read_published(file_);
};

TEST_P(SentencePieceGguf, OfTheModelFileIsThePublishedOne) {
  // One id more than pieces, as Gemma 3 has 64 more.
  const Converted made =
      must(convert(folder_with({{"tokenizer.model", model_file(vocab_)}}), vocab_.tokens.size() + 1));
  const formats::GgufFile gguf = parse(text_of(made.bytes));
  Published again = read_published(gguf);
  EXPECT_EQ(again.tokens.back(), "[PAD" + std::to_string(vocab_.tokens.size()) + "]");
  EXPECT_EQ(again.types.back(), 5);
  again.tokens.pop_back();
  again.scores.pop_back();
  again.types.pop_back();
  EXPECT_TRUE(again.tokens == vocab_.tokens);
  EXPECT_TRUE(again.scores == vocab_.scores);
  EXPECT_TRUE(again.types == vocab_.types);
  EXPECT_EQ(must(gguf.get_string("tokenizer.ggml.model")), "llama");
  EXPECT_EQ(must(gguf.get_bool("tokenizer.ggml.add_space_prefix")), true);
  EXPECT_EQ(must(gguf.get_bool("tokenizer.ggml.add_bos_token")), true);
  EXPECT_EQ(must(gguf.get_bool("tokenizer.ggml.add_eos_token")), false);
  EXPECT_EQ(must(gguf.get_integer("tokenizer.ggml.bos_token_id")), 1);
  EXPECT_EQ(must(gguf.get_integer("tokenizer.ggml.eos_token_id")), 2);
  EXPECT_EQ(must(gguf.get_integer("tokenizer.ggml.unknown_token_id")), 0);
  EXPECT_FALSE(gguf.find("tokenizer.ggml.padding_token_id"));
  expect_reference_ids(made.bytes, GetParam());
}

TEST_P(SentencePieceGguf, OfTokenizerJsonGivesTheSameIds) {
  const std::string json = to_text(json_file(vocab_));
  const Converted made = must(convert(folder_with({{"tokenizer.json", json}}), vocab_.tokens.size()));
  expect_reference_ids(made.bytes, GetParam());
  const auto folder =
      must(tokenizer::Tokenizer::create(must(tokenizer::vocab_from_tokenizer_json(json, ""))));
  const auto gguf =
      must(tokenizer::Tokenizer::create(must(engine::vocab_from_gguf(parse(text_of(made.bytes))))));
  for (const VocabVector& vector : read_vectors(GetParam())) {
    const tokenizer::EncodeOptions with_bos{.add_special = true};
    EXPECT_EQ(must(gguf->encode(vector.text, with_bos)), must(folder->encode(vector.text, with_bos)));
  }
  // Both files: the scores are those of tokenizer.model.
  const Converted both =
      must(convert(folder_with({{"tokenizer.json", json}, {"tokenizer.model", model_file(vocab_)}}),
                   vocab_.tokens.size()));
  EXPECT_TRUE(read_published(parse(text_of(both.bytes))).types == vocab_.types);
  expect_reference_ids(both.bytes, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Vocabs, SentencePieceGguf, testing::Values("llama-spm", "phi-3"),
                         [](const auto& row) {
                           std::string name = row.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// "ab" is made of scores -0, "b▁" of -1.
const Published kSmall = {.tokens = {"<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "b▁", "▁▁"},
                          .scores = {0, 0, 0, -4, -2, -3, 0, -1, -5},
                          .types = {2, 3, 3, 1, 1, 1, 1, 1, 4}};

std::string refusal(const Files& files, size_t vocab_size = 9) {
  const auto made = convert(files, vocab_size);
  return made ? "" : made.error().sentence();
}

TEST(SentencePieceFiles, TokensOfUsersHoldSpaces) {
  const Converted made = must(convert(folder_with({{"tokenizer.model", model_file(kSmall)}}), 9));
  const formats::GgufFile gguf = parse(text_of(made.bytes));
  EXPECT_EQ(must(gguf.get_strings("tokenizer.ggml.tokens"))->back(), "  ");
}

TEST(SentencePieceFiles, ConfigurationNamesSpecialTokens) {
  const Files files = folder_with(
      {{"tokenizer.model", model_file(kSmall, {.dummy_prefix = false})},
       {"tokenizer_config.json",
        R"({"add_bos_token": false, "add_eos_token": true, "pad_token": "<unk>", "eos_token": {"content": "ab"},
            "added_tokens_decoder": {"5": {"content": "b", "special": true}, "9": {"content": "new▁", "special": false}},
            "chat_template": "{{ x }}"})"}});
  const Converted made = must(convert(files, 10));
  const formats::GgufFile gguf = parse(text_of(made.bytes));
  EXPECT_EQ(must(gguf.get_bool("tokenizer.ggml.add_space_prefix")), false);
  EXPECT_EQ(must(gguf.get_bool("tokenizer.ggml.add_bos_token")), false);
  EXPECT_EQ(must(gguf.get_bool("tokenizer.ggml.add_eos_token")), true);
  EXPECT_EQ(must(gguf.get_integer("tokenizer.ggml.eos_token_id")), 6);
  EXPECT_EQ(must(gguf.get_integer("tokenizer.ggml.padding_token_id")), 0);
  EXPECT_EQ(must(gguf.get_string("tokenizer.chat_template")), "{{ x }}");
  EXPECT_EQ(must(gguf.get_strings("tokenizer.ggml.tokens"))->at(9), "new ");
  EXPECT_EQ(must(gguf.get_integers("tokenizer.ggml.token_type"))->at(9), 4);
  EXPECT_EQ(must(gguf.get_integers("tokenizer.ggml.token_type"))->at(5), 3);
}

TEST(SentencePieceFiles, RefusedBecauseGgufHasNoPlaceForThem) {
  const auto model = [](const ModelKind& kind) {
    return refusal(folder_with({{"tokenizer.model", model_file(kSmall, kind)}}));
  };
  EXPECT_NE(model({.model_type = 1}).find("no BPE model (it has type 1)"), std::string::npos);
  EXPECT_NE(model({.model_type = 9}).find("a model type (9) that there is not"), std::string::npos);
  EXPECT_NE(model({.remove_spaces = true}).find("changes characters or spaces"), std::string::npos);
  EXPECT_NE(refusal(folder_with({{"tokenizer.model", model_file(kSmall)}}), 8)
                .find("has 9 pieces, but config.json"),
            std::string::npos);
  const std::string whole = model_file(kSmall);
  EXPECT_NE(refusal(folder_with({{"tokenizer.model", whole.substr(0, whole.size() - 1)}})).find("cut off"),
            std::string::npos);

  const auto json = [](std::initializer_list<const char*> path, const Json& value) {
    Json changed = json_file(kSmall);
    Json* at = &changed;
    for (const char* key : path) at = &(*at)[key];
    *at = value;
    return refusal(folder_with({{"tokenizer.json", to_text(changed)}}));
  };
  EXPECT_EQ(json({"model", "unk_token"}, "<unk>"), "");
  EXPECT_NE(json({"model", "byte_fallback"}, false).find("no \"byte_fallback\""), std::string::npos);
  EXPECT_NE(json({"model", "type"}, "WordPiece").find("holds a WordPiece model"), std::string::npos);
  EXPECT_NE(json({"normalizer"}, nullptr).find("neither a byte-level BPE nor"), std::string::npos);
  EXPECT_NE(json({"normalizer"}, {{"type", "NFKC"}}).find("The normalizer \"NFKC\""), std::string::npos);
  EXPECT_NE(json({"pre_tokenizer"}, {{"type", "Metaspace"}}).find("splits words"), std::string::npos);
  EXPECT_EQ(json({"pre_tokenizer"}, {{"type", "Metaspace"}, {"split", false}}), "");
  const Json twice = {"a b", "b ▁", "a b"}, unknown = {"a a"};
  EXPECT_NE(json({"model", "merges"}, twice).find("in no order of scores (\"ab\""), std::string::npos);
  EXPECT_NE(json({"model", "merges"}, unknown).find("\"aa\", which is no token"), std::string::npos);
}

}  // namespace
}  // namespace doppler
