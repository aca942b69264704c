// Fifteen published vocabularies against the ids that llama.cpp gives for 45 texts each, and what must hold
// for any vocabulary: decoding gives the text back, whole or streamed. To add a vocabulary: a row in kVocabs
// and its three files in tests/data/vocab.tar.xz.
#include <gtest/gtest.h>

#include <algorithm>

#include "tokenizer/stream_decoder.h"
#include "vocab_files_native.h"

namespace doppler {
namespace {

using tokenizer::StreamDecoder;
using tokenizer::Tokenizer;

struct Vocab {
  const char* name;
  size_t size;
  bool exact;  // decoding gives the very text back
};
constexpr Vocab kVocabs[] = {
    {"bert-bge", 30522, false},     {"command-r", 256000, true}, {"deepseek-coder", 32256, true},
    {"deepseek-llm", 102400, true}, {"falcon", 65024, false},    {"gemma-4", 262144, true},
    {"gpt-2", 50257, true},         {"llama-bpe", 128256, true}, {"llama-spm", 32000, true},
    {"mpt", 50432, true},           {"phi-3", 32064, true},      {"qwen2", 151936, true},
    {"qwen35", 151936, true},       {"refact", 49216, true},     {"starcoder", 49152, true},
};

class VocabTest : public testing::TestWithParam<Vocab> {
 protected:
  void SetUp() override {
    auto loaded = load_vocab(GetParam().name);
    ASSERT_TRUE(loaded) << loaded.error().message();
    tokenizer_ = std::move(*loaded);
  }
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_P(VocabTest, ReferenceIds) {
  EXPECT_EQ(tokenizer_->vocab_size(), GetParam().size);
  const auto vectors = read_vectors(GetParam().name);
  ASSERT_GE(vectors.size(), 45u);
  for (const VocabVector& vector : vectors) {
    const auto ids = tokenizer_->encode(vector.text);
    ASSERT_TRUE(ids) << ids.error().message();
    EXPECT_EQ(*ids, vector.ids) << "text: \"" << vector.text << '"';
  }
}

// Every assigned plane, controls, marks, unassigned and private code points: 1 in 7 of all.
std::string unicode_sample() {
  std::string out;
  const auto put = [&out](char32_t c) {
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      out += {static_cast<char>(0xE0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 63)),
              static_cast<char>(0x80 | (c & 63))};
    } else {
      out += {static_cast<char>(0xF0 | (c >> 18)), static_cast<char>(0x80 | ((c >> 12) & 63)),
              static_cast<char>(0x80 | ((c >> 6) & 63)), static_cast<char>(0x80 | (c & 63))};
    }
  };
  for (char32_t c = 1; c < 0x33000; c += 7) {
    if (c < 0xD800 || c > 0xDFFF) put(c);
    if (c % 35 == 1) out += " and ";
  }
  return out;
}

TEST_P(VocabTest, DecodingGivesTheTextBack) {
  // bert-bge lower-cases and drops accents; falcon has no token for 28 of the bytes.
  if (!GetParam().exact) return;
  for (std::string text :
       {unicode_sample(), std::string("  two spaces  \n\n\ttab — “quoted” 12345 naïve 🦙🚀")}) {
    // U+2581 means a space to these two kinds.
    if (tokenizer_->kind() != tokenizer::VocabKind::kByteLevelBpe) {
      for (size_t at; (at = text.find("\xE2\x96\x81")) != std::string::npos;) text.erase(at, 3);
    }
    const auto ids = tokenizer_->encode(text);
    ASSERT_TRUE(ids);
    const auto back = tokenizer_->decode(*ids);
    ASSERT_TRUE(back);
    EXPECT_TRUE(*back == text) << GetParam().name;

    StreamDecoder decoder(*tokenizer_);
    std::string streamed;
    for (const int32_t id : *ids) streamed += decoder.feed(id);
    streamed += decoder.flush();
    EXPECT_TRUE(streamed == text) << GetParam().name;
  }
}

TEST_P(VocabTest, ControlTokensOnlyWhenAskedFor) {
  const int32_t eos = tokenizer_->eos();
  if (eos < 0) return;
  const std::string name(tokenizer_->token_text(eos));
  const std::string text = "a" + name + "b";
  const auto plain = tokenizer_->encode(text);
  const auto parsed = tokenizer_->encode(text, {.parse_special = true});
  ASSERT_TRUE(plain && parsed);
  EXPECT_EQ(std::ranges::count(*plain, eos), 0);
  EXPECT_EQ(std::ranges::count(*parsed, eos), 1);
  EXPECT_TRUE(tokenizer_->is_end_of_generation(eos));
}

INSTANTIATE_TEST_SUITE_P(All, VocabTest, testing::ValuesIn(kVocabs), [](const auto& row) {
  std::string name = row.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(VocabFile, BosWhereTheModelWantsIt) {
  struct Row {
    const char* name;
    std::vector<int32_t> ids;  // of the empty text
  };
  const Row rows[] = {{"llama-bpe", {128000}}, {"llama-spm", {1}},       {"gpt-2", {}},
                      {"qwen2", {}},           {"bert-bge", {101, 102}}, {"gemma-4", {2}}};
  for (const Row& row : rows) {
    const auto tokenizer = load_vocab(row.name);
    ASSERT_TRUE(tokenizer);
    EXPECT_EQ((*tokenizer)->encode("", {.add_special = true}).value(), row.ids) << row.name;
  }
}

TEST(VocabFile, LongRunsTakeLinearTime) {
  // A quadratic merge of a megabyte takes minutes; the test's time limit is the assertion.
  std::string llamas;
  while (llamas.size() < 1 << 20) llamas += "🦙";
  const std::string letters(1 << 20, 'a'), spaces(1 << 20, ' ');
  for (const char* name : {"llama-bpe", "gpt-2", "llama-spm", "deepseek-llm", "mpt", "gemma-4"}) {
    const auto tokenizer = load_vocab(name);
    ASSERT_TRUE(tokenizer);
    for (const std::string* text : std::initializer_list<const std::string*>{&llamas, &letters, &spaces}) {
      const auto ids = (*tokenizer)->encode(*text);
      ASSERT_TRUE(ids);
      EXPECT_EQ((*tokenizer)->decode(*ids).value(), *text) << name;
    }
  }
}

}  // namespace
}  // namespace doppler
