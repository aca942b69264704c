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

constexpr size_t kLanes = 8;

// A sum in lanes.
struct Sum {
  float lane[kLanes] = {};
  double total() const {
    double sum = 0;
    for (const float v : lane) sum += v;
    return sum;
  }
};

}  // namespace

void error_weights(const float* x, const float* importance, size_t count, float* weights) {
  float sum = 0, importance_sum = 0;
  for (size_t i = 0; i < count; ++i) sum += x[i] * x[i];
  const float rms = std::sqrt(sum / static_cast<float>(count));
  for (size_t i = 0; i < count; ++i) weights[i] = rms + std::abs(x[i]);
  if (!importance) return;
  for (size_t i = 0; i < count; ++i) importance_sum += importance[i];
  if (importance_sum <= 0) return;  // a group that is never multiplied: as without
  for (size_t i = 0; i < count; ++i) weights[i] *= importance[i];
}

template <size_t N>
float fit_symmetric(const float* x, const float* weights, int levels) {
  float extreme = 0;
  for (size_t i = 0; i < N; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  }
  if (extreme == 0) return 0;
  float wx[N];
  for (size_t i = 0; i < N; ++i) wx[i] = weights[i] * x[i];
  const auto low = static_cast<float>(-levels), high = static_cast<float>(levels - 1);
  // With codes q for a given inverse scale, the best scale is sum(wxq)/sum(wqq) and lowers the error by
  // sum(wxq)^2/sum(wqq).
  double best_gain = -1, best_scale = 0;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float inverse = -(static_cast<float>(levels) + kStep * static_cast<float>(step)) / extreme;
    Sum wxq, wqq;
    for (size_t i = 0; i < N; i += kLanes) {
      for (size_t l = 0; l < kLanes; ++l) {
        const float q = nearest_whole(inverse * x[i + l], low, high);
        wxq.lane[l] += wx[i + l] * q;
        wqq.lane[l] += weights[i + l] * q * q;
      }
    }
    const double xq = wxq.total(), qq = wqq.total();
    if (qq > 0 && xq * xq > best_gain * qq) {
      best_gain = xq * xq / qq;
      best_scale = xq / qq;
    }
  }
  return static_cast<float>(best_scale);
}

template <size_t N>
Affine fit_affine(const float* x, const float* weights, int max_code, Minimum allowed) {
  float low = x[0], high = x[0];
  for (size_t i = 0; i < N; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  if (allowed == Minimum::kNotNegative) low = std::min(low, 0.0f);
  if (!(high > low)) return {0, -low};
  float wx[N], above[N];
  Sum w_sum, wx_sum;
  for (size_t i = 0; i < N; i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) {
      wx[i + l] = weights[i + l] * x[i + l];
      above[i + l] = x[i + l] - low;
      w_sum.lane[l] += weights[i + l];
      wx_sum.lane[l] += wx[i + l];
    }
  }
  const double w = w_sum.total(), wxs = wx_sum.total();
  const auto top = static_cast<float>(max_code);
  Affine best{(high - low) / top, -low};
  double best_gain = -1;
  bool found = false;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float inverse = (top + kStep * static_cast<float>(step)) / (high - low);
    Sum q_sum, qq_sum, xq_sum;
    for (size_t i = 0; i < N; i += kLanes) {
      for (size_t l = 0; l < kLanes; ++l) {
        const float q = nearest_whole(inverse * above[i + l], 0, top);
        const float wq = weights[i + l] * q;
        q_sum.lane[l] += wq;
        qq_sum.lane[l] += wq * q;
        xq_sum.lane[l] += wx[i + l] * q;
      }
    }
    const double wq = q_sum.total(), wqq = qq_sum.total(), wxq = xq_sum.total();
    const double determinant = w * wqq - wq * wq;
    if (!(determinant > 0)) continue;
    double scale = (w * wxq - wxs * wq) / determinant;
    double minimum = (wq * wxq - wqq * wxs) / determinant;
    if (minimum < 0 && allowed == Minimum::kNotNegative) {
      minimum = 0;
      scale = wxq / wqq;
    }
    if (!(scale > 0)) continue;
    // The least squares' error is sum(wxx) less this.
    const double gain = scale * wxq - minimum * wxs;
    if (found && gain <= best_gain) continue;
    found = true;
    best_gain = gain;
    best = {static_cast<float>(scale), static_cast<float>(minimum)};
  }
  return best;
}

template float fit_symmetric<16>(const float*, const float*, int);
template float fit_symmetric<32>(const float*, const float*, int);
template Affine fit_affine<16>(const float*, const float*, int, Minimum);
template Affine fit_affine<32>(const float*, const float*, int, Minimum);

}  // namespace doppler::formats::quant
