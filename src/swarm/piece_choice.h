// Chooses the next piece of a peer. The first machine should send each piece once, however many machines fetch at the
// same time. So a piece that only the first machine has goes to one peer, and the others take it from that peer. This
// class uses no network.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "swarm/messages.h"

namespace doppler::swarm {

class PieceChoice {
 public:
  // self: the number in this machine's own offer.
  PieceChoice(uint64_t pieces, uint64_t self, bool in_order);

  // An offer of a peer that has some of the pieces.
  struct Fetching {
    uint64_t peer;
    const PieceSet& has;
    std::vector<uint64_t> coming;
  };
  // complete_peers: how many peers have all pieces, without the source.
  void learn(std::span<const Fetching> fetching, size_t complete_peers);

  struct From {
    const PieceSet& has;
    bool is_source = false;
    bool is_worth_more =
        false;  // may also send pieces that others have or fetch: it is faster, or they are silent
  };
  // Considers only pieces for which is_open() holds. No value: this peer should rather send nothing now.
  std::optional<uint64_t> next(const From& from, const std::function<bool(uint64_t piece)>& is_open);

 private:
  // Pieces of a smaller rank come sooner. No value: the piece should not come from this peer.
  std::optional<uint32_t> rank(uint64_t piece, const From& from) const;

  uint64_t self_;
  bool in_order_;
  std::vector<uint16_t> holders_, comers_;  // how many fetching peers have it, fetch it
  std::vector<bool> is_mine_;  // this machine takes these first, if only the first machine has them
  size_t complete_peers_ = 0;
  std::minstd_rand chance_{std::random_device{}()};
};

}  // namespace doppler::swarm
