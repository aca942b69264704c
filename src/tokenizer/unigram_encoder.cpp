// Prefixes are looked up by the lengths that tokens have (unigram_encoder.h).
#include "tokenizer/unigram_encoder.h"

#include <algorithm>
#include <cmath>

#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {
namespace {

constexpr double kUnknownPenalty = 10;  // kUnkPenalty of SentencePiece's unigram_model.cc
constexpr PathEnd kNowhere{-INFINITY, 0, kNoToken};

}  // namespace

UnigramEncoder::UnigramEncoder(const VocabSpec& spec, const TokenIndex& index)
    : spec_(spec), index_(index), byte_ids_(byte_tokens(spec, index)) {
  has_bytes_ = std::ranges::find(byte_ids_, kNoToken) == byte_ids_.end();
  double least = INFINITY;
  std::vector<bool> has_length;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (!is_piece(id) || spec.tokens[i].empty()) continue;
    least = std::min(least, score(id));
    const size_t length = spec.tokens[i].size();
    if (length >= has_length.size()) has_length.resize(length + 1, false);
    has_length[length] = true;
    cuts_.add_token(spec.tokens[i]);
  }
  for (size_t length = 0; length < has_length.size(); ++length) {
    if (has_length[length]) lengths_.push_back(length);
  }
  unknown_score_ = (std::isfinite(least) ? least : 0) - kUnknownPenalty;
}

bool UnigramEncoder::is_piece(int32_t id) const {
  const TokenType type = spec_.types[static_cast<size_t>(id)];
  return type == TokenType::kNormal || type == TokenType::kUserDefined;
}

double UnigramEncoder::score(int32_t id) const {
  const auto i = static_cast<size_t>(id);
  if (spec_.types[i] == TokenType::kUserDefined) return 0;  // above all others, which are logarithms
  return std::isfinite(spec_.scores[i]) ? double{spec_.scores[i]} : 0;
}

void UnigramEncoder::encode(std::string_view piece, EncodeScratch& scratch, std::vector<int32_t>& out) const {
  std::vector<PathEnd>& path = scratch.path;  // by the place where a token ends
  path.assign(piece.size() + 1, kNowhere);
  path[0].score = 0;
  const auto offer = [&](size_t begin, size_t end, double added, int32_t id) {
    const double sum = path[begin].score + added;
    if (sum > path[end].score) path[end] = {sum, begin, id};
  };
  for (size_t at = 0; at < piece.size();) {
    const size_t character = decode_utf8(piece, at).length;
    bool is_token = false;
    for (const size_t length : lengths_) {
      if (length > piece.size() - at) break;
      const int32_t id = index_.find(spec_.tokens, piece.substr(at, length));
      if (id == TokenIndex::kAbsent || !is_piece(id)) continue;
      offer(at, at + length, score(id), id);
      is_token = is_token || length == character;
    }
    if (!is_token) offer(at, at + character, unknown_score_, kNoToken);
    at += character;
  }
  const size_t before = out.size();
  bool is_run = false;  // of unknown characters
  for (size_t end = piece.size(); end > 0; end = path[end].begin) {
    const bool is_unknown = path[end].id == kNoToken;
    if (!is_unknown) {
      out.push_back(path[end].id);
    } else if (has_bytes_) {
      for (size_t i = end; i-- > path[end].begin;)
        out.push_back(byte_ids_[static_cast<unsigned char>(piece[i])]);
    } else if (spec_.unk != kNoToken && !(is_run && spec_.fuse_unknown)) {
      out.push_back(spec_.unk);
    }
    is_run = is_unknown;
  }
  std::reverse(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
}

}  // namespace doppler::tokenizer
