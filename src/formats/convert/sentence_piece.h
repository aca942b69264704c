// tokenizer.model: the SentencePiece library's own file, as Gemma, Llama 2 and old Mistral are published with it. It is
// a protocol buffer; we read the parts that GGUF has a place for. Facts: sentencepiece_model.proto of
// github.com/google/sentencepiece. Read next: hf_sentence_piece.cpp (the conversion).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace doppler::formats {

struct SentencePieces {
  enum class Model : uint8_t { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };  // the file's numbers
  struct Piece {
    std::string text;
    float score = 0;
    int32_t type =
        1;  // the file's numbers, which are GGUF's: normal, unknown, control, user defined, unused, byte
  };
  std::vector<Piece> pieces;  // by id
  Model model = Model::kUnigram;
  bool byte_fallback = false;
  bool add_dummy_prefix = true;          // a space before the text
  bool remove_extra_whitespaces = true;  // which no decoder-only model does
  bool has_character_map = false;        // characters are replaced before anything else
  std::optional<uint32_t> unk, bos, eos, pad;
};

// Errors: cut off, no protocol buffer, types or scores out of range, more pieces than a vocabulary may have.
Result<SentencePieces> parse_sentence_pieces(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace doppler::formats
