// SentencePiece vocabularies as GGUF's "llama" (hf_vocabulary.h): characters are merged by the score of what they make,
// unknown ones become bytes, spaces are U+2581.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "formats/convert/hf_vocabulary.h"
#include "formats/convert/sentence_piece.h"

namespace doppler::formats {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";
// The score of tokens that no merge makes; llama.cpp's converter has the same.
constexpr float kAddedScore = -1000.0f;

struct Pieces {
  HfVocabulary vocabulary;
  std::vector<float> scores;
  bool add_space_prefix = true;
};

bool is_byte(std::string_view text) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' && is_hex(text[3]) && is_hex(text[4]);
}

std::string with_spaces(std::string text) {
  for (size_t at; (at = text.find(kSpaceMark)) != std::string::npos;)
    text.replace(at, kSpaceMark.size(), " ");
  return text;
}

// Added tokens are searched for in the text before it is normalised, so the user's tokens hold spaces.
Result<> place_added(const std::string& text, const Json& id, bool special, Pieces& out) {
  const bool known = id.is_number_unsigned() && id.get<uint64_t>() < out.scores.size();
  const size_t at = known ? host_size(id.get<uint64_t>()) : 0;
  if (known && special && out.vocabulary.types[at] == kUnknownToken) return {};  // says as much
  const bool is_new = known && out.vocabulary.types[at] == kUnusedToken;
  DP_CHECK(out.vocabulary.place(special ? text : with_spaces(text), id,
                                special ? kControlToken : kUserDefinedToken));
  if (is_new || !special) out.scores[at] = kAddedScore;
  return {};
}

// Reads tokenizer.json, or tokenizer_config.json if there is no such file.
Result<> place_all_added(const HfPieceFiles& files, Pieces& out) {
  if (files.tokenizer) {
    DP_TRY(const std::vector<HfAddedToken> added, added_tokens(*files.tokenizer));
    for (const HfAddedToken& token : added) {
      DP_CHECK(place_added(token.text, token.id, token.special, out));
    }
    return {};
  }
  const Json* added = files.config ? find(*files.config, "added_tokens_decoder") : nullptr;
  if (!added || !added->is_object()) return {};
  for (const auto& [id, token] : added->items()) {
    DP_TRY(const auto text, get_string(token, "content"));
    DP_TRY(const auto special, get_bool(token, "special"));
    const auto number = parse_int(id);
    if (!text || !number || *number < 0) {
      return fail(ErrorKind::kInvalidInput,
                  "An added token of tokenizer_config.json has no content, or the id \"%s\".",
                  printable(id).c_str());
    }
    DP_CHECK(place_added(*text, Json(static_cast<uint64_t>(*number)), special.value_or(false), out));
  }
  return {};
}

// ---- tokenizer.model

Result<Pieces> pieces_of_model(const SentencePieces& model, uint32_t vocab_size) {
  if (model.model != SentencePieces::Model::kBpe) {
    return fail(ErrorKind::kUnsupported,
                "tokenizer.model is no BPE model (it has type %u); only those are converted.",
                static_cast<unsigned>(model.model));
  }
  if (model.has_character_map || model.remove_extra_whitespaces) {
    return fail(ErrorKind::kUnsupported,
                "tokenizer.model changes characters or spaces before it splits; GGUF has no place for that.");
  }
  if (model.pieces.size() > vocab_size) {
    return fail(ErrorKind::kInvalidInput,
                "tokenizer.model has %zu pieces, but config.json a vocabulary of %u.", model.pieces.size(),
                vocab_size);
  }
  Pieces out{HfVocabulary(vocab_size), std::vector<float>(vocab_size, kAddedScore), model.add_dummy_prefix};
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePieces::Piece& piece = model.pieces[id];
    out.vocabulary.tokens[id] = piece.type == kUserDefinedToken ? with_spaces(piece.text) : piece.text;
    out.vocabulary.types[id] = piece.type;
    out.scores[id] = piece.score;
  }
  return out;
}

// ---- tokenizer.json

// True: text gets a space in front. Errors: steps that GGUF has no place for.
Result<bool> reads_space_prefix(const Json& tokenizer, std::vector<std::string>& notes) {
  bool prefix = false, marks = false;
  const auto unsupported = [](const char* what, const std::string& type) {
    return fail(ErrorKind::kUnsupported,
                "The %s \"%s\" of tokenizer.json has no place in GGUF's \"llama\" tokenizer.", what,
                printable(type).c_str());
  };
  const auto steps_of = [](const Json* step, const char* list) {
    std::vector<const Json*> steps;
    if (!step || step->is_null()) return steps;
    const Json* inner = step_type(*step) == "Sequence" ? find(*step, list) : nullptr;
    if (!inner || !inner->is_array()) return std::vector<const Json*>{step};
    for (const Json& one : *inner) steps.push_back(&one);
    return steps;
  };
  for (const Json* step : steps_of(find(tokenizer, "normalizer"), "normalizers")) {
    const std::string type = step_type(*step);
    const Json* pattern = find(*step, "pattern");
    if (type == "Prepend") {
      DP_TRY(const auto text, get_string(*step, "prepend"));
      if (text.value_or("") != kSpaceMark) return unsupported("normalizer", type);
      prefix = true;
    } else if (type == "Replace" && pattern) {
      DP_TRY(const auto from, get_string(*pattern, "String"));
      DP_TRY(const auto to, get_string(*step, "content"));
      if (from.value_or("") != " " || to.value_or("") != kSpaceMark) return unsupported("normalizer", type);
      marks = true;
    } else {
      return unsupported("normalizer", type);
    }
  }
  for (const Json* step : steps_of(find(tokenizer, "pre_tokenizer"), "pretokenizers")) {
    const std::string type = step_type(*step);
    const Json* pattern = find(*step, "pattern");
    if (type == "Metaspace") {
      DP_TRY(const auto splits, get_bool(*step, "split"));
      DP_TRY(const auto scheme, get_string(*step, "prepend_scheme"));
      DP_TRY(const auto old_prefix, get_bool(*step, "add_prefix_space"));
      if (splits.value_or(true)) return unsupported("pre_tokenizer that splits words,", type);
      const std::string when = scheme.value_or(old_prefix.value_or(true) ? "always" : "never");
      prefix = prefix || when != "never";
      marks = true;
      if (when == "first") {
        notes.push_back(
            "tokenizer.json puts a space before the first text only; readers of GGUF put one after every "
            "special "
            "token too.");
      }
    } else if (type == "Split" && pattern && marks) {
      // A split on spaces does nothing: the normalizer has left none.
      DP_TRY(const auto from, get_string(*pattern, "String"));
      if (from.value_or("") != " ") return unsupported("pre_tokenizer", type);
    } else {
      return unsupported("pre_tokenizer", type);
    }
  }
  if (marks) return prefix;
  return fail(
      ErrorKind::kUnsupported,
      "tokenizer.json is neither a byte-level BPE nor one that writes spaces as U+2581; only these two are "
      "converted.");
}

// A token's score is how early it is made: the merges that make the same token must follow each other, as they do where
// they were made of scores. Tokens that no merge makes come last.
Result<> score_by_merges(const Json& model, const std::unordered_set<std::string>& added, Pieces& out) {
  DP_TRY(const std::vector<HfMerge> merges, read_merges(model));
  std::unordered_map<std::string_view, uint32_t> ids;
  for (uint32_t id = 0; id < out.scores.size(); ++id) ids.emplace(out.vocabulary.tokens[id], id);
  std::vector<bool> scored(out.scores.size(), false);
  float next = 0;
  std::string last;
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string made = merges[i].left + merges[i].right;
    if (made == last) continue;
    last = made;
    const auto found = ids.find(made);
    if (found == ids.end()) {
      return fail(ErrorKind::kInvalidInput, "Merge %zu of tokenizer.json makes \"%s\", which is no token.", i,
                  printable(made).c_str());
    }
    if (scored[found->second]) {
      if (added.contains(made)) continue;  // is found whole, before anything is merged
      return fail(ErrorKind::kUnsupported,
                  "The merges of tokenizer.json are in no order of scores (\"%s\" comes twice), which GGUF's "
                  "\"llama\" tokenizer needs; tokenizer.model beside it would have the scores.",
                  printable(made).c_str());
    }
    scored[found->second] = true;
    out.scores[found->second] = next--;
  }
  for (size_t id = 0; id < out.scores.size(); ++id) {
    if (!scored[id]) out.scores[id] = next--;
  }
  return {};
}

Result<Pieces> pieces_of_json(const Json& tokenizer, uint32_t vocab_size, std::vector<std::string>& notes) {
  const Json& model = *find(tokenizer, "model");
  DP_TRY(const bool prefix, reads_space_prefix(tokenizer, notes));
  DP_TRY(const auto falls_back, get_bool(model, "byte_fallback"));
  if (!falls_back.value_or(false)) {
    return fail(ErrorKind::kUnsupported,
                "tokenizer.json has no \"byte_fallback\", which GGUF's \"llama\" tokenizer always does.");
  }
  Pieces out{HfVocabulary(vocab_size), std::vector<float>(vocab_size, 0.0f), prefix};
  DP_CHECK(place_vocab(model, out.vocabulary));
  DP_TRY(const std::vector<HfAddedToken> added, added_tokens(tokenizer));
  std::unordered_set<std::string> whole;
  for (const HfAddedToken& token : added) whole.insert(token.text);
  DP_CHECK(score_by_merges(model, whole, out));
  DP_TRY(const auto unknown, get_string(model, "unk_token"));
  for (size_t id = 0; id < out.scores.size(); ++id) {
    int32_t& type = out.vocabulary.types[id];
    if (type == kUnusedToken) out.scores[id] = kAddedScore;
    if (type == kNormalToken && is_byte(out.vocabulary.tokens[id])) type = kByteToken;
    if (type == kNormalToken && unknown == out.vocabulary.tokens[id]) type = kUnknownToken;
  }
  return out;
}

}  // namespace

Result<HfPieces> add_sentence_pieces(const HfPieceFiles& files, uint32_t vocab_size, GgufHeader& header,
                                     std::vector<std::string>& notes) {
  HfPieces out;
  Pieces pieces;
  if (files.model) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(files.model->data());
    DP_TRY(const SentencePieces model,
           parse_sentence_pieces({bytes, files.model->size()}, "tokenizer.model"));
    DP_TRY(pieces, pieces_of_model(model, vocab_size));
    if (!files.tokenizer && files.config) {
      DP_TRY(const auto prefix, get_bool(*files.config, "add_prefix_space"));
      pieces.add_space_prefix = prefix.value_or(pieces.add_space_prefix);
    }
    out.unk = model.unk;
    out.bos = model.bos;
    out.eos = model.eos;
    out.pad = model.pad;
  } else {
    DP_TRY(pieces, pieces_of_json(*files.tokenizer, vocab_size, notes));
    const auto unknown = std::ranges::find(pieces.vocabulary.types, kUnknownToken);
    if (unknown != pieces.vocabulary.types.end()) {
      out.unk = static_cast<uint32_t>(unknown - pieces.vocabulary.types.begin());
    }
  }
  DP_CHECK(place_all_added(files, pieces));
  pieces.vocabulary.name_unused();
  header.add_string("tokenizer.ggml.model", "llama");
  header.add_string("tokenizer.ggml.pre", "default");
  header.add_strings("tokenizer.ggml.tokens", pieces.vocabulary.tokens);
  header.add_f32s("tokenizer.ggml.scores", pieces.scores);
  header.add_i32s("tokenizer.ggml.token_type", pieces.vocabulary.types);
  header.add_bool("tokenizer.ggml.add_space_prefix", pieces.add_space_prefix);
  out.vocabulary = std::move(pieces.vocabulary);
  return out;
}

}  // namespace doppler::formats
