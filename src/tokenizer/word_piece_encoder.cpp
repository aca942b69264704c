// Greedy longest match, by looking up ever shorter prefixes (word_piece_encoder.h).
#include "tokenizer/word_piece_encoder.h"

#include <algorithm>

#include "tokenizer/normaliser.h"

namespace doppler::tokenizer {

WordPieceEncoder::WordPieceEncoder(const VocabSpec& spec, const TokenIndex& index)
    : spec_(spec), index_(index) {
  for (size_t i = 0; i < spec.tokens.size(); ++i) longest_ = std::max(longest_, spec.tokens[i].size());
}

void WordPieceEncoder::encode(std::string_view piece, EncodeScratch& scratch,
                              std::vector<int32_t>& out) const {
  const auto is_lead = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  const auto characters = static_cast<size_t>(std::ranges::count_if(piece, is_lead));
  const size_t before = out.size();
  // No token has the mark inside.
  bool known = characters <= spec_.max_word_characters && piece.find(kSpaceMark) == std::string_view::npos;
  scratch.text.assign(kSpaceMark).append(piece);
  const std::string_view word = scratch.text;
  for (size_t at = 0; known && at < word.size();) {
    size_t length = std::min(longest_, word.size() - at);
    int32_t id = TokenIndex::kAbsent;
    for (; length > 0; --length) {
      if (at + length < word.size() && !is_lead(word[at + length])) continue;  // never half a character
      id = index_.find(spec_.tokens, word.substr(at, length));
      if (id != TokenIndex::kAbsent) break;
    }
    // The bare mark is no beginning of a word.
    known = id != TokenIndex::kAbsent && at + length > kSpaceMark.size();
    if (known) out.push_back(id);
    at += length;
  }
  if (!known) {
    out.resize(before);
    if (spec_.unk != kNoToken) out.push_back(spec_.unk);
  }
}

}  // namespace doppler::tokenizer
