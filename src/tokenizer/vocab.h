// A tokenizer's description, the same whether it came from GGUF metadata or from tokenizer.json: the
// vocabulary and a pipeline  text -> normaliser steps -> splits -> model (merging) -> ids. Made by
// vocab_from_tokenizer_json() below or vocab_from_metadata() (vocab_metadata.h); used by Tokenizer::create().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/text_table.h"

namespace doppler::tokenizer {

enum class VocabKind : uint8_t {
  kByteLevelBpe,   // GPT-2's: bytes written as printable characters, merges by rank
  kSentencePiece,  // characters merged by the score of the resulting token; unknown characters as bytes
  kCharacterBpe,   // characters merged by rank, spaces as U+2581, unknown characters as bytes (Gemma 4)
  kWordPiece,      // greedy longest match in each word; tokens that begin a word start with U+2581
  kUnigram,        // the tokens of the highest sum of scores (Kudo 2018), spaces as U+2581
};
const char* vocab_kind_name(VocabKind kind);

enum class TokenType : uint8_t {  // ggml's numbers
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// Texts that are tokens wherever they occur, before anything else is looked at.
struct AddedToken {
  int32_t id = -1;
  std::string text;
  bool special = false;      // only with EncodeOptions::parse_special
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool single_word = false;  // not inside a word
  // Searched for after the normaliser, as it writes the token, between the other tokens.
  bool normalized = false;
};

struct NormaliserStep {
  enum class Kind : uint8_t {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStripAccents,        // drops marks of all kinds; wants kNfd before it
    kStripBertAccents,    // BERT: drops those without a width; wants kNfd before it
    kReplace,             // every `from` by `to`
    kReplacePattern,      // every match of the regex `from` by `to`
    kPrepend,             // `to` before the text
    kPrependUnlessThere,  // ... that does not start with it
    kPrependAtStart,      // ... and only before the first text of a prompt, not after a special token
    kStripLeft,
    kStripRight,
    kCleanText,     // BERT: no control characters, every white space a space
    kSpaceCjk,      // BERT: spaces around ideographs
    kCharacterMap,  // SentencePiece's, whose bytes are `from` (character_map.h)
    kNmt,           // no controls, line ends and marks without a width as spaces
    kByteLevel,     // every byte as the character of byte_alphabet.h
  };
  Kind kind;
  std::string from, to;
};

enum class SplitBehaviour : uint8_t {
  kIsolated,
  kRemoved,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous
};
struct SplitStep {
  std::string pattern;  // regex.h
  SplitBehaviour behaviour = SplitBehaviour::kIsolated;
  bool invert = false;  // the behaviour is about the text between the matches, not about the matches
  bool adds_space =
      false;  // before each piece that begins with none, which is cut then; an empty pattern cuts nothing
};

inline constexpr int32_t kNoToken = -1;
// The most tokens a vocabulary may have: 2^20 = four times the largest known one. Bounds hostile files.
inline constexpr size_t kMaxVocabSize = size_t{1} << 20;

struct VocabSpec {
  VocabKind kind = VocabKind::kByteLevelBpe;
  TextTable tokens;              // by id, as written in the file
  std::vector<float> scores;     // kSentencePiece, kUnigram: one a token
  std::vector<TokenType> types;  // one a token
  TextTable merges;              // left and right of merge i at 2i and 2i + 1, best first
  std::vector<NormaliserStep> normaliser;
  size_t marking_steps =
      0;  // at the end of normaliser: after the added tokens that AddedToken::normalized means
  bool has_byte_alphabet = false;  // the normaliser has kByteLevel, so that pieces are taken back to bytes
  std::vector<SplitStep> splits;   // applied one after the other, each to the pieces of the one before
  std::vector<AddedToken> added;
  std::vector<int32_t> prefix_ids,
      suffix_ids;                 // around the text with EncodeOptions::add_special: BOS, EOS, ...
  std::vector<int32_t> pair_ids;  // between two texts that are read at once
  uint32_t second_type = 0;       // what models with token types read the second one's tokens as

  int32_t bos = kNoToken, eos = kNoToken, eot = kNoToken, eom = kNoToken, unk = kNoToken, sep = kNoToken,
          pad = kNoToken;
  bool ignore_merges = false;        // a piece that is a token as it stands is not taken apart
  bool fuse_unknown = false;         // neighbouring unknown tokens become one
  bool strip_leading_space = false;  // decoding drops the space that encoding put in front
  size_t max_word_characters = 100;  // kWordPiece: longer words are unknown
};

// `tokenizer_config_json` names the special tokens and whether BOS is added; it may be empty. Errors name
// what this tokenizer cannot do: the model type, a pattern, a normaliser.
Result<VocabSpec> vocab_from_tokenizer_json(std::string_view tokenizer_json,
                                            std::string_view tokenizer_config_json);

// Tokenizer::create() relies on this: sizes agree, ids lie in the vocabulary.
Result<> check_vocab(const VocabSpec& spec);

}  // namespace doppler::tokenizer
