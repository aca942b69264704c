// WordPiece (BERT): a word is the longest token that begins it, then the longest that goes on, ...; a word
// that cannot be made of tokens is unknown as a whole. Tokens that begin a word start with U+2581 in the
// table.
#pragma once

#include "tokenizer/piece_encoder.h"

namespace doppler::tokenizer {

class WordPieceEncoder : public PieceEncoder {
 public:
  WordPieceEncoder(const VocabSpec& spec, const TokenIndex& index);
  void encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& out) const override;

 private:
  const VocabSpec& spec_;
  const TokenIndex& index_;
  size_t longest_ = 0;  // bytes of the longest token
};

}  // namespace doppler::tokenizer
