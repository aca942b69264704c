// The shortest decimal digits that read back as the same number. In WebAssembly the host knows them: std::to_chars of
// libc++ brings 120 KB of tables for it.
#pragma once

#include <string>

namespace doppler {

// A finite number in scientific notation: "-1.5e-07". The exponent's zeros and plus may be missing.
std::string shortest_text(double value);
std::string shortest_text(float value);  // reads back as the same float

}  // namespace doppler
