// The searches behind the quantisers: for one group of weights, the scale (and minimum) whose rounded codes
// have the least weighted squared error. Both try a grid of scales around the one that just reaches the
// extremes, round, and refit the scale to the rounded codes by least squares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace doppler::formats::quant {

// Nearest whole number within [low, high]; NaN gives low.
inline int nearest_code(float value, int low, int high) {
  if (!(value > static_cast<float>(low))) return low;
  if (value >= static_cast<float>(high)) return high;
  return static_cast<int>(value - static_cast<float>(low) + 0.5f) + low;
}

// weight[i] = root mean square of x + |x[i]|.
void error_weights(std::span<const float> x, float* weights);

// x ~ scale * q with q in [-levels, levels - 1]. The scale may be negative, so that the largest x of either
// sign can use the longer side. 0 for a group of zeros.
float fit_symmetric(std::span<const float> x, const float* weights, int levels);

// x ~ scale * q - minimum with q in [0, max_code], scale >= 0, minimum >= 0.
struct Affine {
  float scale, minimum;
};
Affine fit_affine(std::span<const float> x, const float* weights, int max_code);

}  // namespace doppler::formats::quant
