// Base64 with padding (RFC 4648).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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

// Empty: a length that is no multiple of 4, or another sign than the digits and the padding at the end.
inline std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t word = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (digit < 0 && i + padding < text.size()) return std::nullopt;
    word = word << 6 | static_cast<uint32_t>(digit < 0 ? 0 : digit);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) out.push_back(static_cast<char>(word >> shift));
    word = 0;
  }
  out.resize(out.size() - padding);
  return out;
}

}  // namespace doppler
