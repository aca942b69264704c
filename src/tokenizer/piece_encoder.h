// The third part of the pipeline: one piece becomes ids. One class a kind of vocabulary; all are immutable
// and may be shared between threads. Read next: bpe_encoder.h, sentence_piece_encoder.h,
// unigram_encoder.h, word_piece_encoder.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/merge.h"
#include "tokenizer/token_index.h"
#include "tokenizer/vocab.h"

namespace doppler::tokenizer {

// The best way to a place in a piece: the token that ends there.
struct PathEnd {
  double score;
  size_t begin;
  int32_t id;  // kNoToken: a character that no token is
};

// Buffers that live through one encode() call, so that pieces cost no allocation.
struct EncodeScratch {
  std::vector<Symbol> symbols;
  std::string text;
  std::vector<PathEnd> path;
};

class PieceEncoder {
 public:
  virtual ~PieceEncoder() = default;
  // Appends the ids of a piece that is not empty.
  virtual void encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& out) const = 0;
  // True when the text may be cut before `at`, where a space mark begins, without changing its ids.
  virtual bool may_cut_before_space_mark(std::string_view text, size_t at) const {
    (void)text, (void)at;
    return false;
  }
};

// The ids of the tokens "<0x00>" ... "<0xFF>"; kNoToken where the vocabulary lacks one.
std::array<int32_t, 256> byte_tokens(const VocabSpec& spec, const TokenIndex& index);

// Both outlive the encoder.
Result<std::unique_ptr<PieceEncoder>> make_piece_encoder(const VocabSpec& spec, const TokenIndex& index);

}  // namespace doppler::tokenizer
