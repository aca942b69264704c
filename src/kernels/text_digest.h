// 16 hexadecimal digits that name a text in tuning keys (tuning.h): a file, or a build's WGSL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"

namespace doppler::kernels {

// FNV-1a: names a file and tells builds apart; nothing here defends against an attacker.
class TextDigest {
 public:
  void add(std::string_view text) {
    for (const char c : text) step(static_cast<uint8_t>(c));
    step(0);
  }
  std::string text() const { return format_text("%016llx", static_cast<unsigned long long>(hash_)); }

 private:
  void step(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3ull; }
  uint64_t hash_ = 0xcbf29ce484222325ull;
};

}  // namespace doppler::kernels
