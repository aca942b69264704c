// number_text.h by the standard library.
#include <charconv>

#include "base/number_text.h"

namespace doppler {
namespace {

template <typename Number>
std::string scientific(Number value) {
  char text[40];  // 17 digits, sign, point, exponent
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr};
}

}  // namespace

std::string shortest_text(double value) { return scientific(value); }
std::string shortest_text(float value) { return scientific(value); }

}  // namespace doppler
