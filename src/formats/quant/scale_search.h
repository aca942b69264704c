// The searches of the quantisers: for one group of weights, the scale (and minimum) whose rounded codes have the least
// weighted squared error. Both try a grid of scales around the one that just reaches the extremes, round, and refit the
// scale to the rounded codes by least squares. Loops run over whole groups of 16 or 32 in lanes of 8, which compilers
// turn into vector code without being allowed to reorder sums.
#pragma once

#include <cstddef>
#include <cstdint>

namespace doppler::formats::quant {

// Nearest whole number within [low, high]; NaN gives low.
inline float nearest_whole(float value, float low, float high) {
  value = value > low ? value : low;
  value = value < high ? value : high;
  return static_cast<float>(static_cast<int>(value - low + 0.5f)) + low;
}
inline int nearest_code(float value, int low, int high) {
  return static_cast<int>(nearest_whole(value, static_cast<float>(low), static_cast<float>(high)));
}

// weight[i] = (root mean square of x + |x[i]|) * importance[i]; null: 1. Never all zero unless x is.
void error_weights(const float* x, const float* importance, size_t count, float* weights);

// x ~ scale * q with q in [-levels, levels - 1]. The scale may be negative, so that the largest x of either
// sign can use the longer side. 0 for a group of zeros. N: 16 or 32.
template <size_t N>
float fit_symmetric(const float* x, const float* weights, int levels);

// x ~ scale * q - minimum with q in [0, max_code], scale >= 0.
struct Affine {
  float scale, minimum;
};
enum class Minimum : uint8_t { kNotNegative, kAny };
template <size_t N>
Affine fit_affine(const float* x, const float* weights, int max_code, Minimum allowed);

}  // namespace doppler::formats::quant
