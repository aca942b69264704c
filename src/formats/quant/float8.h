// 8-bit floats of four exponent and three mantissa bits (E4M3, "fn": no infinities, one NaN a sign) -> f32, exact.
// Micikevicius et al. 2022, "FP8 Formats for Deep Learning".
#pragma once

#include <cstdint>
#include <limits>

namespace doppler::formats {

constexpr float e4m3_to_f32(uint8_t bits) {
  const uint32_t exponent = (bits >> 3) & 15u, mantissa = bits & 7u;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  // Zero and subnormals: mantissa * 2^-9; else (8 + mantissa) * 2^(exponent - 10).
  float value = static_cast<float>(exponent == 0 ? mantissa : 8 + mantissa) * 0x1p-9f;
  for (uint32_t i = 1; i < exponent; ++i) value *= 2;
  return (bits & 0x80u) != 0 ? -value : value;
}

}  // namespace doppler::formats
