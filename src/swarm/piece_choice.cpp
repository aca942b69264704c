#include "swarm/piece_choice.h"

#include <algorithm>

namespace doppler::swarm {
namespace {

// The finaliser of SplitMix64: every bit of the result depends on every bit of both.
uint64_t mix(uint64_t peer, uint64_t piece) {
  uint64_t x = peer ^ ((piece + 1) * 0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

PieceChoice::PieceChoice(uint64_t pieces, uint64_t self, bool in_order)
    : self_(self), in_order_(in_order), holders_(pieces), comers_(pieces), is_mine_(pieces, true) {}

// Each piece belongs to the peer whose number gives the largest hash with the piece's number. All peers that know of
// each other come to the same division without a message. If a peer leaves, only its own pieces change their owner.
void PieceChoice::learn(std::span<const Fetching> fetching, size_t complete_peers) {
  complete_peers_ = complete_peers;
  std::ranges::fill(comers_, 0);
  for (const Fetching& one : fetching) {
    for (const uint64_t piece : one.coming) ++comers_[piece];
  }
  for (uint64_t piece = 0; piece < holders_.size(); ++piece) {
    holders_[piece] = 0;
    const uint64_t mine = mix(self_, piece);
    bool is_mine = true;
    for (const Fetching& one : fetching) {
      if (one.has.has(piece)) ++holders_[piece];
      is_mine = is_mine && mix(one.peer, piece) <= mine;
    }
    is_mine_[piece] = is_mine;
  }
}

std::optional<uint32_t> PieceChoice::rank(uint64_t piece, const From& from) const {
  constexpr uint32_t kOfAnother = 1 << 17, kUnderWay = 2 << 17,
                     kHeld = 3 << 17;  // above every count of holders
  const bool is_partial = !from.has.has_all();
  if (is_partial) return holders_[piece];
  const bool is_held = holders_[piece] > 0 || (from.is_source && complete_peers_ > 0);
  if ((is_held || comers_[piece] > 0) && !from.is_worth_more) return {};
  if (is_held) return kHeld + holders_[piece];
  if (comers_[piece] > 0) return kUnderWay;
  return is_mine_[piece] ? 0 : kOfAnother;
}

std::optional<uint64_t> PieceChoice::next(const From& from,
                                          const std::function<bool(uint64_t piece)>& is_open) {
  std::optional<uint64_t> best;
  uint32_t best_rank = 0, equals = 0;
  for (uint64_t piece = 0; piece < holders_.size(); ++piece) {
    if (!from.has.has(piece) || !is_open(piece)) continue;
    const auto rank_now = rank(piece, from);
    if (!rank_now || (best && *rank_now > best_rank)) continue;
    if (in_order_) return piece;
    equals = best && *rank_now == best_rank ? equals + 1 : 1;
    if (chance_() % equals == 0) best = piece;
    best_rank = *rank_now;
  }
  return best;
}

}  // namespace doppler::swarm
