// Grid and least squares (scale_search.h).
#include "formats/quant/scale_search.h"

#include <algorithm>
#include <cmath>

namespace doppler::formats::quant {
namespace {

// Steps of the grid around the scale that reaches the extremes, in code units. Finer or wider grids changed
// the error of gaussian groups by less than 0.1 %.
constexpr int kSteps = 9;
constexpr float kStep = 0.1f;

}  // namespace

void error_weights(std::span<const float> x, float* weights) {
  float sum = 0;
  for (const float v : x) sum += v * v;
  const float rms = std::sqrt(sum / static_cast<float>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) weights[i] = rms + std::abs(x[i]);
}

float fit_symmetric(std::span<const float> x, const float* weights, int levels) {
  float extreme = 0;
  for (const float v : x) {
    if (std::abs(v) > std::abs(extreme)) extreme = v;
  }
  if (extreme == 0) return 0;
  // With codes q for a given inverse scale, the best scale is sum(wxq)/sum(wqq) and lowers the error by
  // sum(wxq)^2/sum(wqq).
  float best_gain = -1, best_scale = 0;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float inverse = -(static_cast<float>(levels) + kStep * static_cast<float>(step)) / extreme;
    float wxq = 0, wqq = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const auto q = static_cast<float>(nearest_code(inverse * x[i], -levels, levels - 1));
      wxq += weights[i] * x[i] * q;
      wqq += weights[i] * q * q;
    }
    if (wqq > 0 && wxq * wxq > best_gain * wqq) {
      best_gain = wxq * wxq / wqq;
      best_scale = wxq / wqq;
    }
  }
  return best_scale;
}

Affine fit_affine(std::span<const float> x, const float* weights, int max_code) {
  const auto [low_it, high_it] = std::ranges::minmax_element(x);
  const float low = std::min(*low_it, 0.0f), high = *high_it;
  if (!(high > low)) return {0, -low};
  double w = 0, wx = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    w += weights[i];
    wx += weights[i] * x[i];
  }
  Affine best{(high - low) / static_cast<float>(max_code), -low};
  float best_error = -1;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float inverse = (static_cast<float>(max_code) + kStep * static_cast<float>(step)) / (high - low);
    double wq = 0, wqq = 0, wxq = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double q = nearest_code(inverse * (x[i] - low), 0, max_code);
      wq += weights[i] * q;
      wqq += weights[i] * q * q;
      wxq += weights[i] * x[i] * q;
    }
    const double determinant = w * wqq - wq * wq;
    if (!(determinant > 0)) continue;
    double scale = (w * wxq - wx * wq) / determinant;
    double minimum = (wq * wxq - wqq * wx) / determinant;
    if (minimum < 0) {
      minimum = 0;
      scale = wxq / wqq;
    }
    if (!(scale > 0)) continue;
    const Affine candidate{static_cast<float>(scale), static_cast<float>(minimum)};
    float error = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const int q = nearest_code((x[i] + candidate.minimum) / candidate.scale, 0, max_code);
      const float difference = candidate.scale * static_cast<float>(q) - candidate.minimum - x[i];
      error += weights[i] * difference * difference;
    }
    if (best_error < 0 || error < best_error) {
      best_error = error;
      best = candidate;
    }
  }
  return best;
}

}  // namespace doppler::formats::quant
