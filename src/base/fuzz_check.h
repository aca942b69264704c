// Shared by the fuzz targets: aborts when an error is not one readable sentence.
#pragma once

#include <cstdlib>

#include "base/result.h"

namespace doppler {

inline void check_sentence(const Error& error) {
  const std::string& text = error.sentence();
  if (text.empty() || text.back() != '.') std::abort();
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) std::abort();
  }
}

}  // namespace doppler
