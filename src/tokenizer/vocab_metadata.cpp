// tokenizer.ggml.* -> VocabSpec (vocab_metadata.h). Keys and their defaults: ggml's docs/gguf.md and
// llama.cpp.
#include "tokenizer/vocab_metadata.h"

#include "tokenizer/bert_pipeline.h"
#include "tokenizer/normaliser.h"
#include "tokenizer/pre_tokenizers.h"

namespace doppler::tokenizer {
namespace {

using StepKind = NormaliserStep::Kind;

struct ModelRow {
  const char* model;  // tokenizer.ggml.model
  VocabKind kind;
  // The defaults if the file says nothing: the ids of the first models of that kind.
  int32_t bos, eos, unk, sep, pad;
  bool adds_bos;
};
constexpr ModelRow kModels[] = {
    {"gpt2", VocabKind::kByteLevelBpe, kNoToken, kNoToken, kNoToken, kNoToken, kNoToken, false},
    {"llama", VocabKind::kSentencePiece, 1, 2, 0, kNoToken, kNoToken, true},
    {"bert", VocabKind::kWordPiece, 101, kNoToken, 100, 102, 0, true},
    {"gemma4", VocabKind::kCharacterBpe, kNoToken, kNoToken, kNoToken, kNoToken, kNoToken, true},
    {"t5", VocabKind::kUnigram, kNoToken, 1, 2, kNoToken, 0, false},
};

class MetadataReader {
 public:
  explicit MetadataReader(const VocabMetadata& metadata) : metadata_(metadata) {}

  Result<VocabSpec> read() {
    DP_TRY(const auto model, metadata_.text("tokenizer.ggml.model"));
    if (!model)
      return fail(ErrorKind::kInvalidInput, "The file has no tokenizer (key tokenizer.ggml.model).");
    for (const ModelRow& row : kModels) {
      if (*model == row.model) row_ = &row;
    }
    if (!row_) {
      return fail(
          ErrorKind::kUnsupported,
          "The tokenizer model \"%s\" is not supported; supported are gpt2, llama, bert, gemma4 and t5.",
          printable(*model).c_str());
    }
    spec_.kind = row_->kind;
    DP_CHECK(read_tokens());
    DP_CHECK(read_merges());
    DP_CHECK(read_special_ids());
    bool adds_bos = row_->adds_bos;
    DP_CHECK(read_pipeline(adds_bos));
    DP_CHECK(read_surroundings(adds_bos));
    DP_CHECK(read_added_tokens());
    return std::move(spec_);
  }

 private:
  Result<> read_tokens() {
    DP_TRY(const auto tokens, metadata_.texts("tokenizer.ggml.tokens"));
    if (!tokens || tokens->empty()) {
      return fail(ErrorKind::kInvalidInput, "The file has no vocabulary (key tokenizer.ggml.tokens).");
    }
    const size_t count = tokens->size();
    size_t bytes = 0;
    for (const std::string_view text : *tokens) bytes += text.size();
    spec_.tokens.reserve(count, bytes);
    for (const std::string_view text : *tokens) spec_.tokens.add(text);

    DP_TRY(const auto types, metadata_.integers("tokenizer.ggml.token_type"));
    if (types && types->size() < count) return shorter("token types", types->size());
    spec_.types.assign(count, TokenType::kNormal);
    for (size_t i = 0; types && i < count; ++i) {
      const int64_t type = (*types)[i];
      spec_.types[i] = type >= 1 && type <= 6 ? static_cast<TokenType>(type) : TokenType::kUndefined;
    }
    if (spec_.kind == VocabKind::kSentencePiece || spec_.kind == VocabKind::kUnigram) {
      DP_TRY(const auto scores, metadata_.numbers("tokenizer.ggml.scores"));
      if (!scores)
        return fail(ErrorKind::kInvalidInput, "The vocabulary has no scores (key tokenizer.ggml.scores).");
      if (scores->size() < count) return shorter("scores", scores->size());
      for (size_t i = 0; i < count; ++i) spec_.scores.push_back(static_cast<float>((*scores)[i]));
    }
    return {};
  }

  Unexpected shorter(const char* what, size_t count) const {
    return fail(ErrorKind::kInvalidInput, "The vocabulary has %zu tokens but only %zu %s.",
                spec_.tokens.size(), count, what);
  }

  Result<> read_merges() {
    if (spec_.kind != VocabKind::kByteLevelBpe && spec_.kind != VocabKind::kCharacterBpe) return {};
    DP_TRY(const auto merges, metadata_.texts("tokenizer.ggml.merges"));
    if (!merges)
      return fail(ErrorKind::kInvalidInput, "The vocabulary has no merges (key tokenizer.ggml.merges).");
    size_t bytes = 0;
    for (const std::string_view text : *merges) bytes += text.size();
    spec_.merges.reserve(2 * merges->size(), bytes);
    for (const std::string_view text : *merges) {
      const size_t space = text.find(' ', 1);  // a token may begin with a space
      const bool whole = space == std::string_view::npos;
      spec_.merges.add(whole ? std::string_view() : text.substr(0, space));
      spec_.merges.add(whole ? std::string_view() : text.substr(space + 1));
    }
    return {};
  }

  Result<> read_id(const char* key, int32_t fallback, int32_t& out) {
    const auto count = static_cast<int64_t>(spec_.tokens.size());
    if (fallback < count && out == kNoToken) out = fallback;
    DP_TRY(const auto id, metadata_.integer(key));
    // Out of range is how some converters write "none".
    if (id && *id >= 0 && *id < count) out = static_cast<int32_t>(*id);
    return {};
  }

  Result<> read_special_ids() {
    DP_CHECK(read_id("tokenizer.ggml.cls_token_id", row_->bos, spec_.bos));  // BERT's name for BOS
    DP_CHECK(read_id("tokenizer.ggml.bos_token_id", row_->bos, spec_.bos));
    DP_CHECK(read_id("tokenizer.ggml.eos_token_id", row_->eos, spec_.eos));
    DP_CHECK(read_id("tokenizer.ggml.eot_token_id", kNoToken, spec_.eot));
    DP_CHECK(read_id("tokenizer.ggml.eom_token_id", kNoToken, spec_.eom));  // after a tool call
    DP_CHECK(read_id("tokenizer.ggml.unknown_token_id", row_->unk, spec_.unk));
    DP_CHECK(read_id("tokenizer.ggml.seperator_token_id", row_->sep, spec_.sep));  // spelled so in the format
    return read_id("tokenizer.ggml.padding_token_id", row_->pad, spec_.pad);
  }

  Result<> read_pipeline(bool& adds_bos) {
    switch (spec_.kind) {
      case VocabKind::kByteLevelBpe:
      case VocabKind::kCharacterBpe: {
        const bool by_name = spec_.kind == VocabKind::kByteLevelBpe;
        DP_TRY(const auto named, metadata_.text("tokenizer.ggml.pre"));
        DP_TRY(const PreTokenizer pre, pre_tokenizer(by_name ? named.value_or("default") : "gemma4"));
        for (const char* pattern : pre.patterns) spec_.splits.push_back({pattern});
        spec_.ignore_merges = pre.ignore_merges;
        adds_bos = pre.adds_bos;
        if (!by_name) spec_.normaliser.push_back({StepKind::kReplace, " ", std::string(kSpaceMark)});
        return {};
      }
      case VocabKind::kSentencePiece: {
        DP_TRY(const auto prefix, metadata_.boolean("tokenizer.ggml.add_space_prefix"));
        spec_.strip_leading_space = prefix.value_or(true);
        if (spec_.strip_leading_space) spec_.normaliser.push_back({StepKind::kPrepend, "", " "});
        spec_.normaliser.push_back({StepKind::kReplace, " ", std::string(kSpaceMark)});
        return {};
      }
      case VocabKind::kUnigram:
        return read_unigram_pipeline();
      case VocabKind::kWordPiece:
        append_bert_normaliser({}, spec_.normaliser);
        append_bert_splits(spec_.splits);
        spec_.strip_leading_space = true;
        return {};
    }
    return {};
  }

  // As SentencePiece has it: the map, then spaces.
  Result<> read_unigram_pipeline() {
    DP_TRY(const auto map, metadata_.integers("tokenizer.ggml.precompiled_charsmap"));
    DP_TRY(const auto merges_spaces, metadata_.boolean("tokenizer.ggml.remove_extra_whitespaces"));
    DP_TRY(const auto prefix, metadata_.boolean("tokenizer.ggml.add_space_prefix"));
    if (map && !map->empty()) {
      std::string bytes;
      for (const int64_t byte : *map) bytes.push_back(static_cast<char>(byte));
      spec_.normaliser.push_back({StepKind::kCharacterMap, std::move(bytes), ""});
    }
    if (merges_spaces.value_or(false)) {
      spec_.normaliser.push_back({StepKind::kReplacePattern, " +", " "});
      spec_.normaliser.push_back({StepKind::kStripLeft, "", ""});
      spec_.normaliser.push_back({StepKind::kStripRight, "", ""});
    }
    spec_.strip_leading_space = prefix.value_or(true);
    if (spec_.strip_leading_space) spec_.normaliser.push_back({StepKind::kPrepend, "", " "});
    spec_.normaliser.push_back({StepKind::kReplace, " ", std::string(kSpaceMark)});
    spec_.fuse_unknown = true;
    return {};
  }

  // BERT puts its separator between two texts. Others put the end of the first text and a separator there.
  Result<> read_surroundings(bool adds_bos) {
    DP_TRY(const auto add_bos, metadata_.boolean("tokenizer.ggml.add_bos_token"));
    DP_TRY(const auto add_eos, metadata_.boolean("tokenizer.ggml.add_eos_token"));
    DP_TRY(const auto add_sep, metadata_.boolean("tokenizer.ggml.add_sep_token"));
    const bool is_bert = spec_.kind == VocabKind::kWordPiece, is_unigram = spec_.kind == VocabKind::kUnigram;
    const bool separates = add_sep.value_or(is_bert || is_unigram) && spec_.sep != kNoToken;
    const bool ends = add_eos.value_or(is_unigram) && spec_.eos != kNoToken;
    if (add_bos.value_or(adds_bos) && spec_.bos != kNoToken) spec_.prefix_ids.push_back(spec_.bos);
    if (separates && (is_bert || !ends)) spec_.suffix_ids.push_back(spec_.sep);
    if (ends) spec_.suffix_ids.push_back(spec_.eos);
    spec_.pair_ids = spec_.suffix_ids;
    if (separates && !is_bert && ends) spec_.pair_ids.push_back(spec_.sep);
    spec_.second_type = is_bert ? 1 : 0;
    return {};
  }

  Result<> read_added_tokens() {
    DP_TRY(const auto architecture, metadata_.text("general.architecture"));
    // The conversion of Phi-3 loses that its control tokens take the white space after them.
    const bool is_phi3 = spec_.kind == VocabKind::kSentencePiece && architecture == "phi3";
    for (size_t i = 0; i < spec_.tokens.size(); ++i) {
      const TokenType type = spec_.types[i];
      const bool user = type == TokenType::kUserDefined;
      if (!user && type != TokenType::kControl && type != TokenType::kUnknown) continue;
      const std::string_view text = spec_.tokens[i];
      const bool keeps_space = text == "<unk>" || text == "<s>" || text == "<|endoftext|>";
      spec_.added.push_back({.id = static_cast<int32_t>(i),
                             .text = std::string(text),
                             .special = !user,
                             .rstrip = is_phi3 && !keeps_space});
    }
    return {};
  }

  const VocabMetadata& metadata_;
  const ModelRow* row_ = nullptr;
  VocabSpec spec_;
};

}  // namespace

Result<VocabSpec> vocab_from_metadata(const VocabMetadata& metadata) {
  return MetadataReader(metadata).read();
}

}  // namespace doppler::tokenizer
