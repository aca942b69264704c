// Unigram (Kudo 2018): it picks the way to make a piece of tokens whose scores have the highest sum, by dynamic
// programming over the places where characters end. A character that no token is has the score of the least token less
// 10. Neighbouring ones become one unknown token, or bytes if the vocabulary has them all.
#pragma once

#include <array>

#include "tokenizer/piece_encoder.h"
#include "tokenizer/space_mark_cuts.h"

namespace doppler::tokenizer {

class UnigramEncoder : public PieceEncoder {
 public:
  UnigramEncoder(const VocabSpec& spec, const TokenIndex& index);
  void encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& out) const override;
  bool may_cut_before_space_mark(std::string_view text, size_t at) const override {
    return cuts_.may_cut(text, at);
  }

 private:
  bool is_piece(int32_t id) const;
  double score(int32_t id) const;

  const VocabSpec& spec_;
  const TokenIndex& index_;
  std::array<int32_t, 256> byte_ids_;
  bool has_bytes_;
  std::vector<size_t> lengths_;  // in bytes, that tokens have; ascending
  double unknown_score_ = 0;
  SpaceMarkCuts cuts_;
};

}  // namespace doppler::tokenizer
