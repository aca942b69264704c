// Writes q8_0, q4_0, q4_1, q5_0 and q5_1 blocks (layouts: blocks_of_32.cpp).
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

void pack_nibbles(const uint8_t codes[kBlock], uint8_t* nibbles) {
  for (size_t i = 0; i < 16; ++i)
    nibbles[i] = static_cast<uint8_t>((codes[i] & 0xF) | (codes[i + 16] & 0xF) << 4);
}

uint32_t fifth_bits(const uint8_t codes[kBlock]) {
  uint32_t bits = 0;
  for (size_t i = 0; i < kBlock; ++i) bits |= uint32_t{codes[i]} >> 4 << i;
  return bits;
}

// Codes from 0 to 2 * levels - 1, for x ~ scale * (code - levels). Returns the bits of the scale.
uint16_t encode_symmetric(const float* x, const float* importance, int levels, uint8_t codes[kBlock]) {
  float weights[kBlock];
  error_weights(x, importance, kBlock, weights);
  const StoredScale d = stored(fit_symmetric<kBlock>(x, weights, levels));
  for (size_t i = 0; i < kBlock; ++i) {
    codes[i] = static_cast<uint8_t>(nearest_code(x[i] * d.inverse, -levels, levels - 1) + levels);
  }
  return d.bits;
}

// Codes from 0 to max_code, for x ~ scale * code + offset; both are stored at `out`.
void encode_affine(const float* x, const float* importance, int max_code, uint8_t* out,
                   uint8_t codes[kBlock]) {
  float weights[kBlock];
  error_weights(x, importance, kBlock, weights);
  const Affine fit = fit_affine<kBlock>(x, weights, max_code, Minimum::kAny);
  const StoredScale d = stored(fit.scale);
  const uint16_t m_bits = f32_to_f16(-fit.minimum);
  const float m = f16_to_f32(m_bits);
  for (size_t i = 0; i < kBlock; ++i) {
    codes[i] = static_cast<uint8_t>(nearest_code((x[i] - m) * d.inverse, 0, max_code));
  }
  store_le(out, d.bits);
  store_le(out + 2, m_bits);
}

}  // namespace

// At 8 bits the largest weight decides: a scale search gains less than 1 % of an already small error.
void quantise_q8_0(const float* x, const float* /*importance*/, uint8_t* out, size_t blocks) {
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

void quantise_q4_0(const float* x, const float* importance, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 18, importance += importance ? kBlock : 0) {
    uint8_t codes[kBlock];
    store_le(out, encode_symmetric(x, importance, 8, codes));
    pack_nibbles(codes, out + 2);
  }
}

void quantise_q4_1(const float* x, const float* importance, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 20, importance += importance ? kBlock : 0) {
    uint8_t codes[kBlock];
    encode_affine(x, importance, 15, out, codes);
    pack_nibbles(codes, out + 4);
  }
}

void quantise_q5_0(const float* x, const float* importance, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 22, importance += importance ? kBlock : 0) {
    uint8_t codes[kBlock];
    store_le(out, encode_symmetric(x, importance, 16, codes));
    store_le(out + 2, fifth_bits(codes));
    pack_nibbles(codes, out + 6);
  }
}

void quantise_q5_1(const float* x, const float* importance, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 24, importance += importance ? kBlock : 0) {
    uint8_t codes[kBlock];
    encode_affine(x, importance, 31, out, codes);
    store_le(out + 4, fifth_bits(codes));
    pack_nibbles(codes, out + 8);
  }
}

}  // namespace doppler::formats::quant
