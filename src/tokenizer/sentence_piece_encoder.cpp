// Scores become ranks once, so that the merging of merge.h serves here too (sentence_piece_encoder.h).
#include "tokenizer/sentence_piece_encoder.h"

#include <algorithm>
#include <cmath>

#include "base/stable_order.h"
#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {

SentencePieceEncoder::SentencePieceEncoder(const VocabSpec& spec, const TokenIndex& index)
    : spec_(spec), index_(index), byte_ids_(byte_tokens(spec, index)) {
  const size_t count = spec.tokens.size();
  const auto score = [&spec](uint32_t id) {
    return std::isnan(spec.scores[id]) ? -INFINITY : spec.scores[id];  // keeps the order total
  };
  const std::vector<uint32_t> order =
      stable_order(count, [&](uint32_t a, uint32_t b) { return score(a) > score(b); });
  ranks_.assign(count, Merge::kNoRank);
  uint32_t rank = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0 && score(order[i]) != score(order[i - 1])) ++rank;
    const TokenType type = spec.types[order[i]];
    if (type == TokenType::kByte || type == TokenType::kControl || type == TokenType::kUnknown) continue;
    ranks_[order[i]] = rank;
    longest_ = std::max(longest_, spec.tokens[order[i]].size());
    cuts_.add_token(spec.tokens[order[i]]);
  }
}

void SentencePieceEncoder::encode(std::string_view piece, EncodeScratch& scratch,
                                  std::vector<int32_t>& out) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  for (uint32_t at = 0; at < piece.size();) {
    const uint32_t length = decode_utf8(piece, at).length;
    symbols.push_back({at, length, index_.find(spec_.tokens, piece.substr(at, length))});
    at += length;
  }
  merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) {
    const size_t length = left.length + right.length;
    if (length > longest_) return Merge{};
    const int32_t id = index_.find(spec_.tokens, piece.substr(left.begin, length));
    return id == TokenIndex::kAbsent ? Merge{} : Merge{ranks_[static_cast<size_t>(id)], id};
  });
  for (const Symbol& symbol : symbols) {
    if (symbol.id >= 0) {
      out.push_back(symbol.id);
      continue;
    }
    for (uint32_t i = 0; i < symbol.length; ++i) {
      const int32_t id = byte_ids_[static_cast<unsigned char>(piece[symbol.begin + i])];
      if (id != kNoToken) {
        out.push_back(id);
      } else {
        if (spec_.unk != kNoToken) out.push_back(spec_.unk);
        break;
      }
    }
  }
}

}  // namespace doppler::tokenizer
