// Writes q8_0 and q4_0 blocks (layouts: blocks_of_32.cpp).
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "formats/byte_reader.h"
#include "formats/quant/families.h"
#include "formats/quant/scale_search.h"

namespace doppler::formats::quant {
namespace {

constexpr size_t kBlock = 32;

// The scale as stored, and 1 over it (0 for a scale of 0).
struct StoredScale {
  uint16_t bits;
  float inverse;
};
StoredScale stored(float scale) {
  const uint16_t bits = f32_to_f16(scale);
  const float rounded = f16_to_f32(bits);
  return {bits, rounded == 0 ? 0 : 1 / rounded};
}

}  // namespace

// At 8 bits the largest weight decides: a scale search gains less than 1 % of an already small error.
void quantise_q8_0(const float* x, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 34) {
    float largest = 0;
    for (size_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(x[i]));
    const StoredScale d = stored(largest / 127);
    store_le(out, d.bits);
    for (size_t i = 0; i < kBlock; ++i) {
      out[2 + i] = static_cast<uint8_t>(nearest_code(x[i] * d.inverse, -127, 127));
    }
  }
}

void quantise_q4_0(const float* x, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 18) {
    float weights[kBlock];
    error_weights({x, kBlock}, weights);
    const StoredScale d = stored(fit_symmetric({x, kBlock}, weights, 8));
    store_le(out, d.bits);
    for (size_t i = 0; i < 16; ++i) {
      const int low = nearest_code(x[i] * d.inverse, -8, 7) + 8;
      const int high = nearest_code(x[i + 16] * d.inverse, -8, 7) + 8;
      out[2 + i] = static_cast<uint8_t>(low | (high << 4));
    }
  }
}

}  // namespace doppler::formats::quant
