#include "engine/dispatch/card_prefixes.h"

#include <ranges>

namespace doppler::engine {

CardPrefixes::CardPrefixes(std::span<const uint64_t> cache_tokens) {
  for (const uint64_t tokens : cache_tokens)
    cards_.push_back({.most = tokens / kPieceTokens, .by_use = {}, .places = {}});
}

std::vector<PrefixKey> CardPrefixes::keys_of(std::span<const uint32_t> extras,
                                             std::span<const uint32_t> tokens) const {
  std::vector<PrefixKey> keys;
  PrefixKey key = prefix_key(secret_, {}, extras);
  for (; tokens.size() >= kPieceTokens; tokens = tokens.subspan(kPieceTokens)) {
    key = prefix_key(secret_, key, tokens.first(kPieceTokens));
    keys.push_back(key);
  }
  return keys;
}

uint32_t CardPrefixes::known_tokens(size_t card, std::span<const PrefixKey> keys) const {
  uint32_t pieces = 0;
  while (pieces < keys.size() && cards_[card].places.contains(keys[pieces])) ++pieces;
  return pieces * kPieceTokens;
}

// The beginning of a text is used more recently than its end, so that texts lose their ends first.
void CardPrefixes::note(size_t card, std::span<const PrefixKey> keys) {
  Card& of = cards_[card];
  for (const PrefixKey& key : keys | std::views::reverse) {
    if (const auto found = of.places.find(key); found != of.places.end()) {
      of.by_use.splice(of.by_use.begin(), of.by_use, found->second);
      continue;
    }
    of.by_use.push_front(key);
    of.places.emplace(key, of.by_use.begin());
  }
  while (of.by_use.size() > of.most) {
    of.places.erase(of.by_use.back());
    of.by_use.pop_back();
  }
}

}  // namespace doppler::engine
