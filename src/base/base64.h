// Base64 with padding (RFC 4648).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace doppler {

inline std::string base64(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j) word = word << 8 | (j < count ? bytes[i + j] : 0u);
    for (size_t j = 0; j < 4; ++j) out += j <= count ? kDigits[word >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

}  // namespace doppler
