// Digests as text (sha256.h). The hashing itself: sha256_native.cpp, sha256_web.cpp.
#include "base/sha256.h"

namespace doppler {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string sha256_hex(const Sha256& digest) {
  std::string text;
  text.reserve(2 * digest.size());
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::optional<Sha256> sha256_from_hex(std::string_view hexadecimal) {
  Sha256 digest;
  if (hexadecimal.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    const size_t high = kDigits.find(hexadecimal[2 * i]), low = kDigits.find(hexadecimal[2 * i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
    digest[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return digest;
}

}  // namespace doppler
