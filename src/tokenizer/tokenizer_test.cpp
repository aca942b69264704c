// The parts of the tokenizer on small vocabularies written out here. Whole vocabularies: tests/tokenizer.
#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include "tokenizer/character_map.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/vocab_metadata.h"

namespace doppler::tokenizer {
namespace {

std::shared_ptr<const Tokenizer> from_json(std::string_view json, std::string_view config = "") {
  auto spec = vocab_from_tokenizer_json(json, config);
  EXPECT_TRUE(spec) << spec.error().message();
  if (!spec) return nullptr;
  auto tokenizer = Tokenizer::create(std::move(*spec));
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  return tokenizer ? *tokenizer : nullptr;
}

// Llama 2 as tokenizer.json: spaces marked, one put in front, unknown characters as bytes.
constexpr const char* kCharacterJson = R"({
  "added_tokens": [{"id": 1, "content": "<s>", "special": true}, {"id": 2, "content": "</s>", "special": true},
                   {"id": 10, "content": "<wide>", "special": false, "lstrip": true, "rstrip": true},
                   {"id": 11, "content": "it", "special": false, "single_word": true}],
  "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                 {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
  "pre_tokenizer": null,
  "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                     {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"<s>": {"id": "<s>", "ids": [1]}}},
  "decoder": {"type": "Sequence", "decoders": [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
  "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "fuse_unk": true,
            "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "<0xC3>": 3, "<0xA9>": 4, "▁": 5, "a": 6, "b": 7, "ab": 8,
                      "▁ab": 9, "i": 12, "t": 13},
            "merges": ["a b", ["▁", "ab"]]}})";

TEST(TokenizerJson, CharacterBpe) {
  const auto t = from_json(kCharacterJson, R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  ASSERT_TRUE(t);
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(t->encode("ab ab").value(), (Ids{9, 9}));
  EXPECT_EQ(t->encode("abé", {.add_special = true}).value(), (Ids{1, 9, 3, 4}));
  EXPECT_EQ(t->encode("aZZb").value(), (Ids{5, 6, 0, 7}));  // unknown ones fuse
  EXPECT_EQ(t->encode("a  <wide> b").value(), (Ids{5, 6, 10, 5, 7}));
  EXPECT_EQ(t->encode("it bit").value(), (Ids{11, 5, 5, 7, 12, 13}));
  EXPECT_EQ(t->encode("</s>", {.parse_special = true}).value(), (Ids{2}));
  EXPECT_EQ(t->decode(Ids{1, 9, 9}, {.skip_special = true}).value(), "ab ab");
  EXPECT_EQ(t->decode(Ids{9, 3}).value(), "ab\uFFFD");
  EXPECT_EQ(t->bos(), 1);
  EXPECT_TRUE(t->adds_bos());
  EXPECT_TRUE(t->is_end_of_generation(2));
  EXPECT_FALSE(t->is_end_of_generation(9));
  EXPECT_FALSE(t->decode(Ids{99}));
}

// GLM ends a call of a tool so: a model that went on would write the tool's answer itself.
TEST(TokenizerJson, TheEndOfAMessageEndsAnAnswer) {
  auto spec = vocab_from_tokenizer_json(kCharacterJson, "");
  ASSERT_TRUE(spec);
  spec->eom = 9;
  EXPECT_TRUE(Tokenizer::create(std::move(*spec)).value()->is_end_of_generation(9));
}

TEST(TokenizerJson, WordPiece) {
  const auto t = from_json(R"({"normalizer": {"type": "BertNormalizer", "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {"type": "WordPiece", "unk_token": "[UNK]",
              "vocab": {"[UNK]": 0, "caf": 1, "##e": 2, "cafe": 3, "!": 4, "中": 5, "##s": 6}}})");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->encode("Cafés! CAFÉ\t中中 x").value(), (std::vector<int32_t>{3, 6, 4, 3, 5, 5, 0}));
  EXPECT_EQ(t->decode(std::vector<int32_t>{3, 6, 1}).value(), "cafes caf");
  // Controls that are white space elsewhere are dropped, and the mark of a word's beginning is none inside it.
  EXPECT_EQ(t->encode("caf\v\xC2\x85\fe").value(), (std::vector<int32_t>{3}));
  EXPECT_EQ(t->encode("cafe\xE2\x96\x81"
                      "cafe")
                .value(),
            (std::vector<int32_t>{0}));
}

// A word of three characters is cheapest whole, then as its longest beginning; what no piece has becomes one unknown
// token.
TEST(TokenizerJson, Unigram) {
  const auto t = from_json(R"({"added_tokens": [{"id": 0, "content": "<s>", "special": true},
                                                {"id": 1, "content": "</s>", "special": true}],
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace"}]},
    "post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 1]},
    "decoder": {"type": "Metaspace", "prepend_scheme": "always"},
    "model": {"type": "Unigram", "unk_id": 2, "vocab": [["<s>", 0], ["</s>", 0], ["<unk>", 0], ["▁", -3], ["a", -4],
      ["b", -4], ["▁a", -4.5], ["ab", -7], ["▁ab", -9], ["ba", -8.5]]}})");
  ASSERT_TRUE(t);
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(t->encode("ab").value(), (Ids{6, 5}));  // -8.5, not -9 or -10
  EXPECT_EQ(t->encode(" b  ab\taba ").value(), (Ids{3, 5, 6, 5, 6, 5, 4}));
  EXPECT_EQ(t->encode("aéßb").value(), (Ids{6, 2, 5}));  // unknown ones fuse
  EXPECT_EQ(t->encode("").value(), Ids{});
  EXPECT_EQ(t->decode(Ids{6, 5, 8}).value(), "ab ab");
  const auto pair = t->encode_pair("a", "b").value();
  EXPECT_EQ(pair.ids, (Ids{0, 6, 1, 1, 3, 5, 1}));
  EXPECT_EQ(pair.types, std::vector<uint32_t>(7, 0));
}

// An array with one run of bytes, "A", which becomes "a": root, "A" as the root's child, its value.
TEST(CharacterMap, ReplacesAndChecksWhereItPoints) {
  constexpr uint32_t kRoot = 256, kChild = kRoot ^ 'A', kOwn = 2, kHasValue = 1u << 8, kIsValue = 1u << 31;
  const auto map_of = [&](uint32_t value, std::string_view texts) {
    std::vector<uint32_t> units(512, kIsValue);
    units[0] = kRoot << 10;
    units[kChild] = 'A' | kHasValue | kOwn << 10;
    units[kChild ^ kOwn] = kIsValue | value;
    const uint32_t size = 512 * 4;
    std::string bytes(reinterpret_cast<const char*>(&size), 4);
    bytes.append(reinterpret_cast<const char*>(units.data()), size).append(texts);
    return CharacterMap::create(bytes);
  };
  constexpr std::string_view kTexts("a\0bc\0", 5);
  EXPECT_EQ(map_of(0, kTexts)->apply("AbÄ\xFF"
                                     "A"),
            "abÄ\uFFFDa");
  EXPECT_EQ(map_of(2, kTexts)->apply("A"), "bc");
  EXPECT_EQ(map_of(5, kTexts)->apply("A"), "A");  // outside the texts
  EXPECT_FALSE(map_of(0, "a"));                   // without an end
  EXPECT_FALSE(CharacterMap::create(""));
  EXPECT_FALSE(CharacterMap::create(std::string_view("\xFF\xFF\xFF\xFF\0", 5)));
}

TEST(TokenizerJson, ByteLevelSplitsBeforeMerging) {
  const auto t = from_json(R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\p{N}{1,2}"}, "behavior": "Isolated"},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
    "model": {"type": "BPE", "vocab": {"1": 0, "11": 1, "a": 2, "Ġ": 3, "1111": 4}, "merges": ["1 1", "11 11"]}})");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->encode("a 11111").value(), (std::vector<int32_t>{2, 3, 1, 1, 0}));
  EXPECT_EQ(t->decode(std::vector<int32_t>{2, 3, 4}).value(), "a 1111");
}

TEST(TokenizerJson, RefusalsSayWhat) {
  struct Row {
    const char* json;
    const char* part;  // of the sentence
  };
  const Row rows[] = {
      {"", "an object"},
      {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0", "'}'"},
      {R"({"model": {"type": "Unigram", "vocab": {"a": 0}}})", "no list of tokens with scores"},
      {R"({"model": {"type": "Unigram", "vocab": [["a", 0.5, 1]]}})", "']'"},
      {R"({"model": {"type": "Unigram", "vocab": [["a", 0.5]], "unk_id": 1}})", "\"unk_id\" 1"},
      {R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})", "-1"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 9999999}, "merges": []}})", "9999999"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["ab"]}})", "merge"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}})", "two texts"},
      {R"({"normalizer": {"type": "Nnt"}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
       "\"Nnt\""},
      {R"({"normalizer": {"type": "ByteLevel"}, "pre_tokenizer": {"type": "ByteLevel"},
           "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
       "twice"},
      {R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "A==="},
           "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
       "base64"},
      {R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "CAAAAAAAAAAA"},
           "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
       "has 9 bytes, but its array takes 8"},
      {R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                             {"type": "Metaspace", "prepend_scheme": "never"}]},
           "model": {"type": "Unigram", "vocab": [["a", -1]]}})",
       "\"never\""},
      {R"({"pre_tokenizer": {"type": "UnicodeScripts"}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
       "\"UnicodeScripts\""},
      {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"\\ud800\": 0}}}", "surrogate"},
      {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"\xFF\": 0}}}", "UTF-8"},
      {R"({"model": {"type": "BPE", "vocab": {}, "merges": []}})", "0 tokens"},
      {R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a\\b"}, "behavior": "Isolated"},
           "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
       "\\b"},
  };
  for (const Row& row : rows) {
    auto spec = vocab_from_tokenizer_json(row.json, "");
    std::string message = spec ? "" : spec.error().message();
    if (spec) {
      const auto made = Tokenizer::create(std::move(*spec));
      if (!made) message = made.error().message();
    }
    EXPECT_NE(message.find(row.part), std::string::npos) << row.json << " -> " << message;
  }
}

TEST(StreamDecoder, NeverHalfACharacter) {
  const auto t = from_json(kCharacterJson);
  ASSERT_TRUE(t);
  StreamDecoder decoder(*t);
  EXPECT_EQ(decoder.feed(9), "ab");  // the space that encoding put in front is gone
  EXPECT_EQ(decoder.feed(3), "");
  EXPECT_EQ(decoder.feed(4), "é");
  EXPECT_EQ(decoder.feed(4), "\uFFFD");  // leads no character
  EXPECT_EQ(decoder.feed(3), "");
  EXPECT_EQ(decoder.feed(9), "\uFFFD ab");
  EXPECT_EQ(decoder.feed(3), "");
  EXPECT_EQ(decoder.flush(), "\uFFFD");
  EXPECT_EQ(decoder.flush(), "");
  StreamDecoder answer(*t, {}, false);
  EXPECT_EQ(answer.feed(9), " ab");
}

TEST(Tokenizer, AnyBytesMayBeEncoded) {
  std::string json =
      R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "model": {"type": "BPE",
                         "merges": [], "vocab": {)";
  for (int i = 0; i < 0x144; ++i) {  // all characters of the byte alphabet, and some more
    char entry[32];
    std::snprintf(entry, sizeof(entry), "%s\"\\u%04x\": %d", i ? "," : "", i, i);
    json += entry;
  }
  const auto t = from_json(json + "}}}");
  ASSERT_TRUE(t);
  std::string bytes;
  for (int i = 0; i < 512; ++i) bytes += static_cast<char>(i * 7);
  const auto ids = t->encode(bytes);
  EXPECT_EQ(ids->size(), bytes.size());
  EXPECT_EQ(t->decode(*ids, {.replace_invalid = false}).value(), bytes);
}

}  // namespace
}  // namespace doppler::tokenizer
