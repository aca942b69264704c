// Remembers which card has evaluated the beginning of a text, as far as requests went there. It keeps chains of keys
// over pieces of 64 tokens, for each card as many as the card's cache holds; the least recently used leave first. A
// card drops what it likes and nobody asks it: a wrong guess costs an evaluation and nothing else.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/scheduler/prefix_key.h"

namespace doppler::engine {

class CardPrefixes {
 public:
  static constexpr uint32_t kPieceTokens = 64;

  // The tokens that each card's cache holds.
  explicit CardPrefixes(std::span<const uint64_t> cache_tokens);

  // The keys of a text's whole pieces. `extras`: what else its keys and values depend on.
  std::vector<PrefixKey> keys_of(std::span<const uint32_t> extras, std::span<const uint32_t> tokens) const;
  // Tokens at the beginning of the text with these keys that the card has, probably.
  uint32_t known_tokens(size_t card, std::span<const PrefixKey> keys) const;
  // The card evaluates this text, or has done so.
  void note(size_t card, std::span<const PrefixKey> keys);

 private:
  struct Card {
    size_t most = 0;
    std::list<PrefixKey> by_use;  // the most recently used first
    std::unordered_map<PrefixKey, std::list<PrefixKey>::iterator, PrefixKeyHash> places;
  };
  const PrefixSecret secret_ = random_prefix_secret();
  std::vector<Card> cards_;
};

}  // namespace doppler::engine
