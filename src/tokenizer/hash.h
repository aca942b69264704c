// A fast hash of short texts and of pairs of ids, for the tables of this folder. Seeds are fixed: a hostile
// text can only slow its own encoding down, and the word cache (piece_cache.h) overwrites instead of probing.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace doppler::tokenizer {

// The finaliser of MurmurHash3 (public domain): every input bit moves every output bit.
inline uint64_t mix_bits(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDull;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53ull;
  return x ^ (x >> 33);
}

inline uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0x9E3779B97F4A7C15ull ^ text.size();
  const char* at = text.data();
  size_t left = text.size();
  for (; left > 8; at += 8, left -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDull;
    hash ^= hash >> 29;
  }
  uint64_t word = 0;
  std::memcpy(&word, at, left);
  return mix_bits(hash ^ word);
}

}  // namespace doppler::tokenizer
