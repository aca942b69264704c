// Writes q4_k, q5_k and q6_k blocks (layouts: k_large.cpp): scales per group by search, then those as small
// integers times the block's f16 scale, which is refitted once to the codes that result; the better of both
// is kept.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "formats/byte_reader.h"
#include "formats/quant/families.h"
#include "formats/quant/k_scales.h"
#include "formats/quant/scale_search.h"

namespace doppler::formats::quant {
namespace {

constexpr size_t kBlock = 256;
constexpr int kMaxScale = 63;  // 6 bits

float round_f16(float value) { return f16_to_f32(f32_to_f16(value)); }

// One q4_k or q5_k block before packing.
struct AffineBlock {
  float d = 0, dmin = 0;  // as stored, rounded to f16
  ScaleMin groups[8] = {};
  uint8_t codes[kBlock] = {};
  float error = 0;  // weighted and squared
};

// Codes and error for the block's scales.
void encode(AffineBlock& block, const float* x, const float* weights, int max_code) {
  block.error = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const ScaleMin group = block.groups[i / 32];
    const float scale = block.d * static_cast<float>(group.scale);
    const float minimum = block.dmin * static_cast<float>(group.min);
    const int code = scale > 0 ? nearest_code((x[i] + minimum) / scale, 0, max_code) : 0;
    block.codes[i] = static_cast<uint8_t>(code);
    const float difference = scale * static_cast<float>(code) - minimum - x[i];
    block.error += weights[i] * difference * difference;
  }
}

// With codes and small integers fixed, d and dmin are a linear least-squares problem with two unknowns.
AffineBlock refit(const AffineBlock& block, const float* x, const float* weights, int max_code) {
  double aa = 0, am = 0, mm = 0, ax = 0, mx = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const ScaleMin group = block.groups[i / 32];
    const double a = static_cast<double>(group.scale) * block.codes[i];
    const double m = -static_cast<double>(group.min);
    aa += weights[i] * a * a;
    am += weights[i] * a * m;
    mm += weights[i] * m * m;
    ax += weights[i] * a * x[i];
    mx += weights[i] * m * x[i];
  }
  const double determinant = aa * mm - am * am;
  AffineBlock better = block;
  if (!(determinant > 0)) return better;
  const double d = (ax * mm - mx * am) / determinant;
  const double dmin = (aa * mx - am * ax) / determinant;
  if (!(d > 0) || !(dmin >= 0)) return better;
  better.d = round_f16(static_cast<float>(d));
  better.dmin = round_f16(static_cast<float>(dmin));
  encode(better, x, weights, max_code);
  return better;
}

AffineBlock fit_block(const float* x, int max_code) {
  float weights[kBlock];
  Affine fits[8];
  float max_scale = 0, max_minimum = 0;
  for (size_t g = 0; g < 8; ++g) {
    const std::span<const float> group(x + 32 * g, 32);
    error_weights(group, weights + 32 * g);
    fits[g] = fit_affine(group, weights + 32 * g, max_code);
    max_scale = std::max(max_scale, fits[g].scale);
    max_minimum = std::max(max_minimum, fits[g].minimum);
  }
  AffineBlock block;
  block.d = round_f16(max_scale / kMaxScale);
  block.dmin = round_f16(max_minimum / kMaxScale);
  for (size_t g = 0; g < 8; ++g) {
    if (block.d > 0) {
      block.groups[g].scale = static_cast<uint32_t>(nearest_code(fits[g].scale / block.d, 0, kMaxScale));
    }
    if (block.dmin > 0) {
      block.groups[g].min = static_cast<uint32_t>(nearest_code(fits[g].minimum / block.dmin, 0, kMaxScale));
    }
  }
  encode(block, x, weights, max_code);
  const AffineBlock better = refit(block, x, weights, max_code);
  return better.error < block.error ? better : block;
}

// `fifth` is where q5_k's fifth bits go, or null.
void pack(const AffineBlock& block, uint8_t* out, uint8_t* fifth, uint8_t* qs) {
  store_le(out, f32_to_f16(block.d));
  store_le(out + 2, f32_to_f16(block.dmin));
  pack_scale_mins(block.groups, out + 4);
  if (fifth) std::memset(fifth, 0, 32);
  for (size_t i = 0; i < 128; ++i) {
    const size_t pair = i / 32, l = i % 32;
    const uint32_t low = block.codes[64 * pair + l], high = block.codes[64 * pair + 32 + l];
    qs[i] = static_cast<uint8_t>((low & 0xF) | ((high & 0xF) << 4));
    if (fifth)
      fifth[l] = static_cast<uint8_t>(fifth[l] | (low >> 4 << (2 * pair)) | (high >> 4 << (2 * pair + 1)));
  }
}

}  // namespace

void quantise_q4_k(const float* x, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 144) pack(fit_block(x, 15), out, nullptr, out + 16);
}

void quantise_q5_k(const float* x, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 176)
    pack(fit_block(x, 31), out, out + 16, out + 48);
}

void quantise_q6_k(const float* x, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 210) {
    float scales[16], extreme = 0, weights[16];
    for (size_t g = 0; g < 16; ++g) {
      const std::span<const float> group(x + 16 * g, 16);
      error_weights(group, weights);
      scales[g] = fit_symmetric(group, weights, 32);
      if (std::abs(scales[g]) > std::abs(extreme)) extreme = scales[g];
    }
    const uint16_t d_bits = f32_to_f16(extreme / -128);
    const float d = f16_to_f32(d_bits);
    int8_t codes[kBlock];
    for (size_t g = 0; g < 16; ++g) {
      const int scale = d == 0 ? 0 : nearest_code(scales[g] / d, -128, 127);
      out[192 + g] = static_cast<uint8_t>(scale);
      const float step = d * static_cast<float>(scale);
      for (size_t i = 16 * g; i < 16 * g + 16; ++i) {
        codes[i] = static_cast<int8_t>(step == 0 ? 0 : nearest_code(x[i] / step, -32, 31));
      }
    }
    pack_q6_k_codes(codes, out);
    store_le(out + 208, d_bits);
  }
}

}  // namespace doppler::formats::quant
