// The model of test_sequence_runner.h: it chooses each token by a hash of all tokens before it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/sequence_runner.h"

namespace doppler::engine::testing {

inline constexpr uint64_t kEmptyPrefix = 0x9E3779B97F4A7C15ull;

// Steele, Lea and Flood's splitmix64: any good mixer does.
inline uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// A word that stands for a position's adapters; 0: it has none.
inline uint64_t adapter_word(const model::GenerationSettings& settings, size_t pos) {
  if (!settings.adapters || pos < settings.adapters_from) return 0;
  uint64_t word = 1;
  for (const uint32_t part : settings.adapters->key()) word = mix(word ^ part);
  return word << 32;
}

// The prefix after a further token.
inline uint64_t after(uint64_t prefix, uint32_t token, uint64_t adapter) {
  return mix(prefix ^ mix(token | adapter)) | 1;
}

inline uint32_t chosen_token(uint64_t prefix, const model::GenerationSettings& settings, uint32_t generated,
                             uint32_t vocab) {
  return static_cast<uint32_t>(mix(prefix ^ mix(settings.seed ^ mix(generated))) % vocab);
}

inline bool stops(const model::GenerationSettings& settings, uint32_t token) {
  return !settings.ignore_stop &&
         std::ranges::find(settings.stop_tokens, token) != settings.stop_tokens.end();
}

}  // namespace doppler::engine::testing
