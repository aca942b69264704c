// The common parts of the kinds of tokenizer that hf_tokenizer.cpp translates: tokens by id, and the steps of a
// tokenizer.json. Read next: hf_byte_level.cpp, hf_sentence_piece.cpp, hf_unigram.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/source.h"

namespace doppler::formats {

enum HfTokenType : int32_t {  // GGUF's numbers
  kNormalToken = 1,
  kUnknownToken = 2,
  kControlToken = 3,
  kUserDefinedToken = 4,
  kUnusedToken = 5,
  kByteToken = 6
};

struct HfVocabulary {
  std::vector<std::string> tokens;  // by id
  std::vector<int32_t> types;       // HfTokenType; kUnusedToken until placed

  explicit HfVocabulary(uint32_t vocab_size = 0) : tokens(vocab_size), types(vocab_size, kUnusedToken) {}
  // Errors: the id is no number, or outside the vocabulary of config.json.
  Result<> place(const std::string& text, const Json& id, int32_t type);
  void name_unused();  // "[PAD5]"
  std::optional<uint32_t> find(std::string_view text) const;
};

struct HfAddedToken {
  std::string text;
  Json id;
  bool special;
};
// The list "added_tokens" of tokenizer.json.
Result<std::vector<HfAddedToken>> added_tokens(const Json& tokenizer);

// The tokens of model.vocab. Error: it is no object, or place()'s.
Result<> place_vocab(const Json& model, HfVocabulary& vocabulary);
// Merges as "left right"; newer files have pairs.
struct HfMerge {
  std::string left, right;
};
Result<std::vector<HfMerge>> read_merges(const Json& model);

// The type of a step, empty if it has none; and the step of a type, by itself or within a "Sequence" whose list is
// `list`.
std::string step_type(const Json& step);
const Json* find_step(const Json* step, const char* type, const char* list);

// True if `tokenizer`, a tokenizer.json, splits text into bytes written as characters: GPT-2's kind.
bool is_byte_level(const Json& tokenizer);

// tokenizer.ggml.model and all fields that follow from the vocabulary. Byte-level BPE of a tokenizer.json:
Result<HfVocabulary> add_byte_level(const Json& tokenizer, uint32_t vocab_size, GgufHeader& header);

// SentencePiece's kind, from those files that the folder has: tokenizer.model has the scores; without it they follow
// from the merges of tokenizer.json. `config`: tokenizer_config.json.
struct HfPieceFiles {
  std::optional<std::string> model;
  const Json* tokenizer = nullptr;  // null: none
  const Json* config = nullptr;
};
struct HfPieces {
  HfVocabulary vocabulary;
  std::optional<uint32_t> unk, bos, eos, pad;  // as tokenizer.model has them
};
Result<HfPieces> add_sentence_pieces(const HfPieceFiles& files, uint32_t vocab_size, GgufHeader& header,
                                     std::vector<std::string>& notes);

// A Unigram model of a tokenizer.json.
Result<HfPieces> add_unigram(const Json& tokenizer, uint32_t vocab_size, GgufHeader& header,
                             std::vector<std::string>& notes);

}  // namespace doppler::formats
