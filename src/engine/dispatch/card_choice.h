// Who of several cards gets a request: the one for which it is the least work, among those that have a place for it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/scheduler/stream.h"

namespace doppler::engine {

// A card as the dispatcher sees it.
struct CardState {
  uint32_t places = 1;                               // sequences that it decodes together
  std::array<uint32_t, kMaxPriority + 1> streams{};  // that it was given and that have not ended, by priority
  bool is_lost = false;

  // Those that keep a request of this priority from beginning.
  uint32_t rivals(int32_t priority) const {
    uint32_t count = 0;
    for (int32_t p = priority; p <= kMaxPriority; ++p) count += streams[static_cast<size_t>(p)];
    return count;
  }
};

// Each stream that a card decodes makes its steps slower for all others. We count it like so many tokens of a prompt:
// a cached beginning draws a request to its card, unless that card has many more streams than another.
inline constexpr uint32_t kTokensOfStream = 256;

// `known[i]`: tokens of the prompt that card i has in its cache. No value: no card has a place.
inline std::optional<size_t> choose_card(std::span<const CardState> cards, int32_t priority,
                                         uint32_t prompt_tokens, std::span<const uint32_t> known) {
  std::optional<size_t> best;
  uint64_t best_cost = 0;
  for (size_t i = 0; i < cards.size(); ++i) {
    const uint32_t rivals = cards[i].rivals(priority);
    if (cards[i].is_lost || rivals >= cards[i].places) continue;
    const uint64_t cost = uint64_t{prompt_tokens} - known[i] + uint64_t{kTokensOfStream} * rivals;
    if (best && cost >= best_cost) continue;
    best = i;
    best_cost = cost;
  }
  return best;
}

}  // namespace doppler::engine
