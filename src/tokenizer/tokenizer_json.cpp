// tokenizer.json and tokenizer_config.json -> VocabSpec (vocab.h). The vocabulary and the merges are read
// while scanning; everything else is small and read as a tree (tokenizer_json_pipeline.h).
#include <algorithm>

#include "base/json.h"
#include "tokenizer/json_scanner.h"
#include "tokenizer/normaliser.h"
#include "tokenizer/tokenizer_json_pipeline.h"
#include "tokenizer/vocab.h"

namespace doppler::tokenizer {
namespace {

class TokenizerJsonReader {
 public:
  Result<VocabSpec> read(std::string_view tokenizer_json, std::string_view config_json) {
    JsonScanner scanner(tokenizer_json);
    DP_CHECK(scanner.object([&](const std::string& key) -> Result<> {
      if (key == "model") return read_model(scanner);
      DP_TRY(const std::string_view value, scanner.skip_value());
      Json* target = key == "added_tokens"     ? &added_
                     : key == "normalizer"     ? &normaliser_
                     : key == "pre_tokenizer"  ? &pre_tokenizer_
                     : key == "post_processor" ? &post_processor_
                     : key == "decoder"        ? &decoder_
                                               : nullptr;
      if (target) {
        DP_TRY(*target, parse_json(value, "tokenizer.json"));
      }
      return {};
    }));
    DP_CHECK(choose_kind());
    DP_CHECK(read_added_tokens());
    DP_CHECK(make_token_table());
    DP_CHECK(read_normaliser(normaliser_, spec_));
    DP_CHECK(read_pre_tokenizer(pre_tokenizer_, spec_, byte_level_));
    if (byte_level_ || spec_.has_byte_alphabet) {
      if (spec_.kind != VocabKind::kCharacterBpe) {
        return fail(ErrorKind::kUnsupported,
                    "ByteLevel steps of tokenizer.json go with the model type BPE only.");
      }
      spec_.kind = VocabKind::kByteLevelBpe;
    }
    spec_.second_type = spec_.kind == VocabKind::kWordPiece ? 1 : 0;
    DP_CHECK(read_post_processor(post_processor_, spec_));
    DP_CHECK(read_decoder(decoder_, spec_));
    DP_CHECK(read_config(config_json));
    if (spec_.pair_ids.empty()) spec_.pair_ids = spec_.suffix_ids;
    return std::move(spec_);
  }

 private:
  Result<> read_model(JsonScanner& scanner) {
    return scanner.object([&](const std::string& key) -> Result<> {
      if (key == "vocab" && scanner.peek() == '{') return read_vocab(scanner);
      if (key == "vocab" && scanner.peek() == '[') return read_scored_vocab(scanner);
      if (key == "merges" && scanner.peek() == '[') return read_merges(scanner);
      DP_TRY(const std::string_view value, scanner.skip_value());
      DP_TRY(model_[key], parse_json(value, "tokenizer.json"));
      return {};
    });
  }

  Result<> read_vocab(JsonScanner& scanner) {
    return scanner.object([&](const std::string& token) -> Result<> {
      DP_TRY(const int64_t id, scanner.integer());
      if (id < 0 || static_cast<size_t>(id) >= kMaxVocabSize) {
        return fail(ErrorKind::kInvalidInput, "The token \"%s\" has the id %lld; 0 to %zu are allowed.",
                    printable(token).c_str(), static_cast<long long>(id), kMaxVocabSize - 1);
      }
      vocab_texts_.add(token);
      vocab_ids_.push_back(static_cast<int32_t>(id));
      return {};
    });
  }

  // Unigram's: [["▁the", -3.5], ...], by id.
  Result<> read_scored_vocab(JsonScanner& scanner) {
    return scanner.array([&]() -> Result<> {
      if (vocab_ids_.size() == kMaxVocabSize) return scanner.expected("the end of a vocabulary this large");
      if (!scanner.take('[')) return scanner.expected("a token and its score");
      DP_TRY(const std::string_view token, scanner.string());
      vocab_texts_.add(token);
      vocab_ids_.push_back(static_cast<int32_t>(vocab_ids_.size()));
      if (!scanner.take(',')) return scanner.expected("the score of a token");
      DP_TRY(const double score, scanner.number());
      spec_.scores.push_back(static_cast<float>(score));
      return scanner.take(']') ? Result<>() : scanner.expected("']'");
    });
  }

  // Old files: "a b". New ones: ["a", "b"].
  Result<> read_merges(JsonScanner& scanner) {
    return scanner.array([&]() -> Result<> {
      if (scanner.peek() != '[') {
        DP_TRY(const std::string_view merge, scanner.string());
        const size_t space = merge.find(' ', 1);
        if (space == std::string_view::npos) return scanner.expected("a merge \"left right\" before here");
        spec_.merges.add(merge.substr(0, space));
        spec_.merges.add(merge.substr(space + 1));
        return {};
      }
      size_t parts = 0;
      DP_CHECK(scanner.array([&]() -> Result<> {
        DP_TRY(const std::string_view part, scanner.string());
        spec_.merges.add(part);
        ++parts;
        return {};
      }));
      if (parts != 2) return scanner.expected("a merge of two texts before here");
      return {};
    });
  }

  Result<> choose_kind() {
    DP_TRY(auto type, get_string(model_, "type"));
    const std::string name = type.value_or(spec_.merges.empty() ? "" : "BPE");
    if (name == "BPE") {
      spec_.kind = VocabKind::kCharacterBpe;  // unless a ByteLevel step comes
      for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
        DP_TRY(const auto affix, get_string(model_, key));
        if (affix && !affix->empty()) {
          return fail(ErrorKind::kUnsupported,
                      "The BPE model of tokenizer.json has a %s (\"%s\"); not supported.", key,
                      printable(*affix).c_str());
        }
      }
    } else if (name == "WordPiece") {
      spec_.kind = VocabKind::kWordPiece;
      spec_.strip_leading_space = true;
      DP_TRY(const auto longest, get_integer(model_, "max_input_chars_per_word"));
      spec_.max_word_characters = static_cast<size_t>(std::clamp<int64_t>(longest.value_or(100), 1, 1 << 20));
    } else if (name == "Unigram") {
      spec_.kind = VocabKind::kUnigram;
      if (spec_.scores.size() != vocab_ids_.size()) {
        return fail(ErrorKind::kInvalidInput,
                    "The Unigram model of tokenizer.json has no list of tokens with scores.");
      }
      DP_TRY(const auto unknown, get_integer(model_, "unk_id"));
      const auto count = static_cast<int64_t>(vocab_ids_.size());
      if (unknown && (*unknown < 0 || *unknown >= count)) {
        return fail(ErrorKind::kInvalidInput,
                    "The Unigram model of tokenizer.json has the \"unk_id\" %lld; its tokens are %lld.",
                    static_cast<long long>(*unknown), static_cast<long long>(count));
      }
      if (unknown) spec_.unk = static_cast<int32_t>(*unknown);
    } else {
      return fail(ErrorKind::kUnsupported,
                  "The model type \"%s\" of tokenizer.json is not supported; supported are BPE, WordPiece "
                  "and Unigram.",
                  printable(name).c_str());
    }
    DP_TRY(const auto ignore_merges, get_bool(model_, "ignore_merges"));
    DP_TRY(const auto fuse_unknown, get_bool(model_, "fuse_unk"));
    spec_.ignore_merges = ignore_merges.value_or(false);
    spec_.fuse_unknown = fuse_unknown.value_or(spec_.kind == VocabKind::kUnigram);
    return {};
  }

  Result<> read_added_tokens() {
    if (!added_.is_array() && !added_.is_null()) {
      return fail(ErrorKind::kInvalidInput, "\"added_tokens\" of tokenizer.json is not a list.");
    }
    for (const Json& node : added_) {
      DP_TRY(const auto id, get_integer(node, "id"));
      DP_TRY(auto content, get_string(node, "content"));
      if (!id || !content || *id < 0 || static_cast<size_t>(*id) >= kMaxVocabSize) {
        return fail(ErrorKind::kInvalidInput,
                    "An added token of tokenizer.json has no text, or no id from 0 to %zu.",
                    kMaxVocabSize - 1);
      }
      AddedToken token{.id = static_cast<int32_t>(*id), .text = std::move(*content)};
      struct Row {
        const char* key;
        bool AddedToken::* member;
      };
      constexpr Row kRows[] = {{"special", &AddedToken::special},
                               {"lstrip", &AddedToken::lstrip},
                               {"rstrip", &AddedToken::rstrip},
                               {"single_word", &AddedToken::single_word},
                               {"normalized", &AddedToken::normalized}};
      for (const Row& row : kRows) {
        DP_TRY(const auto value, get_bool(node, row.key));
        token.*row.member = value.value_or(false);
      }
      spec_.added.push_back(std::move(token));
    }
    return {};
  }

  // Ids may come in any order, with holes, and added tokens may lie after the vocabulary.
  Result<> make_token_table() {
    int32_t last = -1;
    for (const int32_t id : vocab_ids_) last = std::max(last, id);
    for (const AddedToken& token : spec_.added) last = std::max(last, token.id);
    const auto count = static_cast<size_t>(last + 1);
    std::vector<int64_t> source(count, -1);  // index into vocab_texts_; below -1: -2 - index into added
    for (size_t i = 0; i < vocab_ids_.size(); ++i)
      source[static_cast<size_t>(vocab_ids_[i])] = static_cast<int64_t>(i);
    spec_.types.assign(count, TokenType::kNormal);
    for (size_t i = 0; i < spec_.added.size(); ++i) {
      const auto id = static_cast<size_t>(spec_.added[i].id);
      source[id] = -2 - static_cast<int64_t>(i);
      spec_.types[id] = spec_.added[i].special ? TokenType::kControl : TokenType::kUserDefined;
    }
    for (size_t id = 0; id < count; ++id) {
      if (source[id] == -1) {
        spec_.tokens.add(format_text("[UNUSED%zu]", id));
        spec_.types[id] = TokenType::kUnused;
      } else if (source[id] < -1) {
        spec_.tokens.add(spec_.added[static_cast<size_t>(-2 - source[id])].text);
      } else {
        add_vocab_token(vocab_texts_[static_cast<size_t>(source[id])], spec_.types[id]);
      }
    }
    if (spec_.kind == VocabKind::kUnigram) spec_.scores.resize(count, 0.0f);
    DP_TRY(const auto unknown, get_string(model_, "unk_token"));
    if (unknown) spec_.unk = id_of(*unknown);
    return {};
  }

  void add_vocab_token(std::string_view text, TokenType& type) {
    const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
    if (text.size() == 6 && text.starts_with("<0x") && text[5] == '>' && is_hex(text[3]) && is_hex(text[4])) {
      type = TokenType::kByte;
    }
    if (spec_.kind != VocabKind::kWordPiece) return spec_.tokens.add(text);
    // "##ing" goes on a word; all others begin one, which vocab.h writes with the space mark.
    if (text.starts_with("##") && text.size() > 2) return spec_.tokens.add(text.substr(2));
    spec_.tokens.add(std::string(kSpaceMark).append(text));
  }

  int32_t id_of(std::string_view text) const {
    for (const AddedToken& token : spec_.added) {
      if (token.text == text) return token.id;
    }
    for (size_t i = 0; i < vocab_ids_.size(); ++i) {
      if (vocab_texts_[i] == text) return vocab_ids_[i];
    }
    return kNoToken;
  }

  // bos_token and the like are a text or an object with "content".
  Result<> read_config(std::string_view config_json) {
    if (config_json.empty()) return {};
    DP_TRY(const Json config, parse_json(config_json, "tokenizer_config.json"));
    struct Row {
      const char* key;
      int32_t VocabSpec::* id;
    };
    constexpr Row kRows[] = {{"bos_token", &VocabSpec::bos},
                             {"eos_token", &VocabSpec::eos},
                             {"unk_token", &VocabSpec::unk},
                             {"sep_token", &VocabSpec::sep},
                             {"pad_token", &VocabSpec::pad}};
    for (const Row& row : kRows) {
      const Json* node = find(config, row.key);
      if (node && node->is_object()) node = find(*node, "content");
      if (!node || !node->is_string()) continue;
      const int32_t id = id_of(node->text());
      if (id != kNoToken) spec_.*row.id = id;
    }
    // If no post-processor says it, these flags do.
    DP_TRY(const auto add_bos, get_bool(config, "add_bos_token"));
    DP_TRY(const auto add_eos, get_bool(config, "add_eos_token"));
    if (add_bos.value_or(false) && spec_.prefix_ids.empty() && spec_.bos != kNoToken) {
      spec_.prefix_ids.push_back(spec_.bos);
    }
    if (add_eos.value_or(false) && spec_.suffix_ids.empty() && spec_.eos != kNoToken) {
      spec_.suffix_ids.push_back(spec_.eos);
    }
    return {};
  }

  VocabSpec spec_;
  TextTable vocab_texts_;
  std::vector<int32_t> vocab_ids_;
  bool byte_level_ = false;
  Json model_ = Json::object();  // without vocab and merges
  Json added_, normaliser_, pre_tokenizer_, post_processor_, decoder_;
};

}  // namespace

Result<VocabSpec> vocab_from_tokenizer_json(std::string_view tokenizer_json,
                                            std::string_view tokenizer_config_json) {
  auto spec = TokenizerJsonReader().read(tokenizer_json, tokenizer_config_json);
  if (!spec) return forward(std::move(spec).error().add_while("reading tokenizer.json"));
  return spec;
}

}  // namespace doppler::tokenizer
