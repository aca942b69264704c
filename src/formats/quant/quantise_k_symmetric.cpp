// Writes q3_k and q6_k blocks (layouts: k_small.cpp, k_large.cpp): a scale per group of 16 by search, then those as
// small integers times the block's f16 scale, which is refitted once to the codes that result; the better of both is
// kept.
#include <cmath>

#include "base/half.h"
#include "formats/byte_reader.h"
#include "formats/quant/families.h"
#include "formats/quant/scale_search.h"

namespace doppler::formats::quant {
namespace {

constexpr size_t kBlock = 256, kGroup = 16, kGroups = kBlock / kGroup;

struct SymmetricBlock {
  float d = 0;  // as stored, rounded to f16
  int8_t scales[kGroups] = {};
  int8_t codes[kBlock] = {};
  double error = 0;  // weighted and squared
};

void encode(SymmetricBlock& block, const float* x, const float* weights, int levels) {
  block.error = 0;
  const auto low = static_cast<float>(-levels), high = static_cast<float>(levels - 1);
  for (size_t g = 0; g < kGroups; ++g) {
    const float step = block.d * static_cast<float>(block.scales[g]);
    const float inverse = step == 0 ? 0 : 1 / step;
    float errors[kGroup];
    for (size_t i = 0; i < kGroup; ++i) {
      const float v = x[kGroup * g + i];
      const float code = nearest_whole(v * inverse, low, high);
      const float difference = step * code - v;
      block.codes[kGroup * g + i] = static_cast<int8_t>(static_cast<int>(code));
      errors[i] = weights[kGroup * g + i] * difference * difference;
    }
    for (const float error : errors) block.error += error;
  }
}

// The scales in integers from -range to range - 1.
SymmetricBlock fit_block(const float* x, const float* importance, int levels, int range) {
  float scales[kGroups], extreme = 0, weights[kBlock];
  for (size_t g = 0; g < kGroups; ++g) {
    error_weights(x + kGroup * g, importance ? importance + kGroup * g : nullptr, kGroup,
                  weights + kGroup * g);
    scales[g] = fit_symmetric<kGroup>(x + kGroup * g, weights + kGroup * g, levels);
    if (std::abs(scales[g]) > std::abs(extreme)) extreme = scales[g];
  }
  SymmetricBlock block;
  block.d = f16_to_f32(f32_to_f16(extreme / static_cast<float>(-range)));
  if (block.d == 0) return block;
  for (size_t g = 0; g < kGroups; ++g) {
    block.scales[g] = static_cast<int8_t>(nearest_code(scales[g] / block.d, -range, range - 1));
  }
  encode(block, x, weights, levels);

  double xq = 0, qq = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const double q = static_cast<double>(block.scales[i / kGroup]) * block.codes[i];
    xq += weights[i] * x[i] * q;
    qq += weights[i] * q * q;
  }
  if (!(qq > 0)) return block;
  SymmetricBlock better = block;
  better.d = f16_to_f32(f32_to_f16(static_cast<float>(xq / qq)));
  encode(better, x, weights, levels);
  return better.error < block.error ? better : block;
}

}  // namespace

void quantise_q3_k(const float* x, const float* importance, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 110, importance += importance ? kBlock : 0) {
    const SymmetricBlock block = fit_block(x, importance, 4, 32);
    pack_q3_k_codes(block.codes, block.scales, out);
    store_le(out + 108, f32_to_f16(block.d));
  }
}

void quantise_q6_k(const float* x, const float* importance, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 210, importance += importance ? kBlock : 0) {
    const SymmetricBlock block = fit_block(x, importance, 32, 128);
    pack_q6_k_codes(block.codes, out);
    for (size_t g = 0; g < kGroups; ++g) out[192 + g] = static_cast<uint8_t>(block.scales[g]);
    store_le(out + 208, f32_to_f16(block.d));
  }
}

}  // namespace doppler::formats::quant
