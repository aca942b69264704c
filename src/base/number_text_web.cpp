// number_text.h by the host; the other side is web/instance.mjs.
#include "base/host_web.h"
#include "base/number_text.h"

namespace doppler {
namespace {

constexpr uint32_t kCapacity = 40;  // 17 digits, sign, point, exponent

// Writes at most kCapacity bytes and returns their count.
DP_HOST_IMPORT("dp_number") uint32_t host_number(double value, uint32_t is_float, char* text);

std::string ask_host(double value, bool is_float) {
  char text[kCapacity];
  return {text, host_number(value, is_float, text)};
}

}  // namespace

std::string shortest_text(double value) { return ask_host(value, false); }
std::string shortest_text(float value) { return ask_host(static_cast<double>(value), true); }

}  // namespace doppler
