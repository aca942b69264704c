// Writes q2_k, q4_k and q5_k blocks (layouts: k_small.cpp, k_large.cpp): scale and minimum per group by search, then
// those as small integers times the block's two f16 numbers, which are refitted once to the codes that result; the
// better of both is kept.
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

float round_f16(float value) { return f16_to_f32(f32_to_f16(value)); }

// N: weights a group.
template <size_t N>
struct AffineBlock {
  static constexpr size_t kGroups = kBlock / N;
  float d = 0, dmin = 0;  // as stored, rounded to f16
  ScaleMin groups[kGroups] = {};
  uint8_t codes[kBlock] = {};
  double error = 0;  // weighted and squared
};

// Codes and error for the block's scales.
template <size_t N>
void encode(AffineBlock<N>& block, const float* x, const float* weights, int max_code) {
  block.error = 0;
  const auto top = static_cast<float>(max_code);
  for (size_t g = 0; g < AffineBlock<N>::kGroups; ++g) {
    const float scale = block.d * static_cast<float>(block.groups[g].scale);
    const float minimum = block.dmin * static_cast<float>(block.groups[g].min);
    const float inverse = scale > 0 ? 1 / scale : 0;
    float errors[N];
    for (size_t i = 0; i < N; ++i) {
      const float v = x[N * g + i];
      const float code = nearest_whole((v + minimum) * inverse, 0, top);
      const float difference = scale * code - minimum - v;
      block.codes[N * g + i] = static_cast<uint8_t>(static_cast<int>(code));
      errors[i] = weights[N * g + i] * difference * difference;
    }
    for (const float error : errors) block.error += error;
  }
}

// With codes and small integers fixed, d and dmin are a linear least-squares problem with two unknowns.
template <size_t N>
AffineBlock<N> refit(const AffineBlock<N>& block, const float* x, const float* weights, int max_code) {
  double aa = 0, am = 0, mm = 0, ax = 0, mx = 0;
  for (size_t g = 0; g < AffineBlock<N>::kGroups; ++g) {
    double w = 0, wq = 0, wqq = 0, wx = 0, wxq = 0;
    for (size_t i = N * g; i < N * g + N; ++i) {
      const float q = block.codes[i], wq_i = weights[i] * q, wx_i = weights[i] * x[i];
      w += weights[i];
      wq += wq_i;
      wqq += wq_i * q;
      wx += wx_i;
      wxq += wx_i * q;
    }
    const double s = block.groups[g].scale, m = -static_cast<double>(block.groups[g].min);
    aa += s * s * wqq;
    am += s * m * wq;
    mm += m * m * w;
    ax += s * wxq;
    mx += m * wx;
  }
  const double determinant = aa * mm - am * am;
  AffineBlock<N> better = block;
  if (!(determinant > 0)) return better;
  const double d = (ax * mm - mx * am) / determinant;
  const double dmin = (aa * mx - am * ax) / determinant;
  if (!(d > 0) || !(dmin >= 0)) return better;
  better.d = round_f16(static_cast<float>(d));
  better.dmin = round_f16(static_cast<float>(dmin));
  encode(better, x, weights, max_code);
  return better;
}

// The weighted squared error of a group with this scale and minimum.
template <size_t N>
double group_error(const float* x, const float* weights, float scale, float minimum, int max_code) {
  constexpr size_t kLanes = 8;
  const auto top = static_cast<float>(max_code);
  const float inverse = scale > 0 ? 1 / scale : 0;
  float errors[kLanes] = {};
  for (size_t i = 0; i < N; i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) {
      const float v = x[i + l];
      const float difference = scale * nearest_whole((v + minimum) * inverse, 0, top) - minimum - v;
      errors[l] += weights[i + l] * difference * difference;
    }
  }
  double sum = 0;
  for (const float error : errors) sum += error;
  return sum;
}

// Rounded apart, scale and minimum are not the best pair of integers: their neighbours are tried too.
template <size_t N>
ScaleMin best_integers(const AffineBlock<N>& block, const Affine& fit, const float* x, const float* weights,
                       int max_code, int max_scale) {
  const int scale = block.d > 0 ? nearest_code(fit.scale / block.d, 0, max_scale) : 0;
  const int minimum = block.dmin > 0 ? nearest_code(fit.minimum / block.dmin, 0, max_scale) : 0;
  ScaleMin best{};
  double best_error = -1;
  for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, max_scale); ++s) {
    for (int m = std::max(minimum - 1, 0); m <= std::min(minimum + 1, max_scale); ++m) {
      const double error = group_error<N>(x, weights, block.d * static_cast<float>(s),
                                          block.dmin * static_cast<float>(m), max_code);
      if (best_error >= 0 && error >= best_error) continue;
      best_error = error;
      best = {static_cast<uint32_t>(s), static_cast<uint32_t>(m)};
    }
  }
  return best;
}

template <size_t N>
AffineBlock<N> fit_block(const float* x, const float* importance, int max_code, int max_scale) {
  constexpr size_t kGroups = AffineBlock<N>::kGroups;
  float weights[kBlock];
  Affine fits[kGroups];
  float largest_scale = 0, largest_minimum = 0;
  for (size_t g = 0; g < kGroups; ++g) {
    error_weights(x + N * g, importance ? importance + N * g : nullptr, N, weights + N * g);
    fits[g] = fit_affine<N>(x + N * g, weights + N * g, max_code, Minimum::kNotNegative);
    largest_scale = std::max(largest_scale, fits[g].scale);
    largest_minimum = std::max(largest_minimum, fits[g].minimum);
  }
  AffineBlock<N> block;
  block.d = round_f16(largest_scale / static_cast<float>(max_scale));
  block.dmin = round_f16(largest_minimum / static_cast<float>(max_scale));
  for (size_t g = 0; g < kGroups; ++g) {
    block.groups[g] = best_integers(block, fits[g], x + N * g, weights + N * g, max_code, max_scale);
  }
  encode(block, x, weights, max_code);
  const AffineBlock<N> better = refit(block, x, weights, max_code);
  return better.error < block.error ? better : block;
}

constexpr int kSixBits = 63, kFourBits = 15;

// `fifth` is where q5_k's fifth bits go, or null.
void pack(const AffineBlock<32>& block, uint8_t* out, uint8_t* fifth, uint8_t* qs) {
  store_le(out, f32_to_f16(block.d));
  store_le(out + 2, f32_to_f16(block.dmin));
  pack_scale_mins(block.groups, out + 4);
  if (fifth) std::memset(fifth, 0, 32);
  for (size_t i = 0; i < 128; ++i) {
    const size_t pair = i / 32, l = i % 32;
    const uint32_t low = block.codes[64 * pair + l], high = block.codes[64 * pair + 32 + l];
    qs[i] = static_cast<uint8_t>((low & 0xF) | ((high & 0xF) << 4));
    if (fifth) {
      fifth[l] = static_cast<uint8_t>(fifth[l] | (low >> 4 << (2 * pair)) | (high >> 4 << (2 * pair + 1)));
    }
  }
}

}  // namespace

void quantise_q2_k(const float* x, const float* importance, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 84, importance += importance ? kBlock : 0) {
    const AffineBlock<16> block = fit_block<16>(x, importance, 3, kFourBits);
    for (size_t g = 0; g < 16; ++g) {
      out[g] = static_cast<uint8_t>(block.groups[g].scale | block.groups[g].min << 4);
    }
    pack_two_bits(block.codes, out + 16);
    store_le(out + 80, f32_to_f16(block.d));
    store_le(out + 82, f32_to_f16(block.dmin));
  }
}

void quantise_q4_k(const float* x, const float* importance, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 144, importance += importance ? kBlock : 0) {
    pack(fit_block<32>(x, importance, 15, kSixBits), out, nullptr, out + 16);
  }
}

void quantise_q5_k(const float* x, const float* importance, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 176, importance += importance ? kBlock : 0) {
    pack(fit_block<32>(x, importance, 31, kSixBits), out, out + 16, out + 48);
  }
}

}  // namespace doppler::formats::quant
