// The 12 bytes in which q4_k and q5_k keep eight 6-bit scales s and eight 6-bit minima m:
//   byte i (i < 4): s[i] in the low 6 bits, the top 2 bits of s[i+4] above them
//   byte 4 + i:     m[i] likewise, with the top 2 bits of m[i+4]
//   byte 8 + i:     the low 4 bits of s[i+4], then those of m[i+4]
#pragma once

#include <cstddef>
#include <cstdint>

namespace doppler::formats::quant {

struct ScaleMin {
  uint32_t scale, min;  // 0..63
};

inline ScaleMin unpack_scale_min(const uint8_t packed[12], size_t group) {
  if (group < 4) return {packed[group] & 63u, packed[group + 4] & 63u};
  const size_t i = group - 4;
  return {(packed[8 + i] & 0xFu) | (uint32_t{packed[i]} >> 6 << 4),
          (uint32_t{packed[8 + i]} >> 4) | (uint32_t{packed[4 + i]} >> 6 << 4)};
}

inline void pack_scale_mins(const ScaleMin groups[8], uint8_t packed[12]) {
  for (size_t i = 0; i < 4; ++i) {
    const ScaleMin first = groups[i], second = groups[i + 4];
    packed[i] = static_cast<uint8_t>(first.scale | (second.scale >> 4 << 6));
    packed[4 + i] = static_cast<uint8_t>(first.min | (second.min >> 4 << 6));
    packed[8 + i] = static_cast<uint8_t>((second.scale & 0xF) | ((second.min & 0xF) << 4));
  }
}

}  // namespace doppler::formats::quant
