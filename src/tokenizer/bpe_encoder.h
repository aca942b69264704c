// Byte-pair encoding by merge rank. Byte-level: symbols are bytes (GPT-2, Llama 3, Qwen, ...).
// Character-level: symbols are characters, and a character the vocabulary lacks becomes its bytes (Gemma 4,
// Llama 2 as tokenizer.json). Read next: merge.h.
#pragma once

#include <array>

#include "tokenizer/piece_encoder.h"
#include "tokenizer/space_mark_cuts.h"

namespace doppler::tokenizer {

class BpeEncoder : public PieceEncoder {
 public:
  static Result<std::unique_ptr<PieceEncoder>> create(const VocabSpec& spec, const TokenIndex& index);
  void encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& out) const override;
  bool may_cut_before_space_mark(std::string_view text, size_t at) const override {
    return !byte_level_ && cuts_.may_cut(text, at);
  }

 private:
  BpeEncoder(const VocabSpec& spec, const TokenIndex& index) : spec_(spec), index_(index) {}
  Result<> add_merges();
  int32_t id_or_intermediate(std::string_view text, uint64_t hash);
  int32_t whole_piece(std::string_view piece, EncodeScratch& scratch) const;
  void emit_unknown(std::string_view bytes, std::vector<int32_t>& out) const;

  const VocabSpec& spec_;
  const TokenIndex& index_;
  bool byte_level_ = true;
  std::array<int32_t, 256> byte_ids_{};   // byte-level: of the symbol of a byte; else "<0x..>"
  std::array<int32_t, 128> ascii_ids_{};  // character-level: of the token of a character
  PairTable pairs_;
  // Texts that merges pass through but that are no tokens get the ids after the vocabulary's.
  TextTable intermediates_;
  TokenIndex intermediate_index_;
  SpaceMarkCuts cuts_;
};

}  // namespace doppler::tokenizer
