// SentencePiece's BPE model (Llama 2, Phi-3, Gemma as GGUF): neighbouring symbols are merged when their joined text is
// a token, the token of the highest score first, leftmost among equals. Text that is no token becomes bytes.
#pragma once

#include <array>

#include "tokenizer/piece_encoder.h"
#include "tokenizer/space_mark_cuts.h"

namespace doppler::tokenizer {

class SentencePieceEncoder : public PieceEncoder {
 public:
  SentencePieceEncoder(const VocabSpec& spec, const TokenIndex& index);
  void encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& out) const override;
  bool may_cut_before_space_mark(std::string_view text, size_t at) const override {
    return cuts_.may_cut(text, at);
  }

 private:
  const VocabSpec& spec_;
  const TokenIndex& index_;
  std::array<int32_t, 256> byte_ids_;
  std::vector<uint32_t> ranks_;  // of each token: 0 has the highest score; kNoRank: not a result of merging
  size_t longest_ = 0;           // bytes of the longest token that merging can make
  SpaceMarkCuts cuts_;
};

}  // namespace doppler::tokenizer
