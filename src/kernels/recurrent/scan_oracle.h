// scan in double precision, both rules: a state a head from zero on, row by row.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/recurrent/scan.h"

namespace doppler::kernels::testing {

inline double softplus(double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }

// y of all rows of x, the inputs in the first columns of `stride`; the gates are columns of x itself.
inline std::vector<double> scan_oracle(const Scan& c, const std::vector<float>& x,
                                       const std::vector<float>& vectors, uint32_t stride) {
  const size_t row_count = x.size() / stride;
  const bool is_ssd = c.rule == ScanRule::kMamba2;
  const uint32_t values = c.n_heads * c.value_dim, keys = c.n_key_heads * c.key_dim;
  std::vector<double> y(row_count * values);
  for (uint32_t head = 0; head < c.n_heads; ++head) {
    std::vector<double> s(size_t{c.key_dim} * c.value_dim);
    const uint32_t key_head = c.is_tiled ? head % c.n_key_heads : head / (c.n_heads / c.n_key_heads);
    for (size_t row = 0; row < row_count; ++row) {
      const float* in = &x[row * stride];
      const float* q = in + (is_ssd ? values + keys : 0) + key_head * c.key_dim;
      const float* k = in + (is_ssd ? values : keys) + key_head * c.key_dim;
      const float* v = in + (is_ssd ? 0 : 2 * keys) + head * c.value_dim;
      const float* gates = in;
      const double rate_in = softplus(double{gates[c.gate_column + head]} + vectors[c.n_heads + head]);
      double kk = 0, qq = 0;
      for (uint32_t i = 0; i < c.key_dim; ++i) kk += double{k[i]} * k[i], qq += double{q[i]} * q[i];
      const double k_scale = is_ssd ? 1 : 1 / std::sqrt(kk + 1e-6);
      const double q_scale = is_ssd ? 1 : 1 / std::sqrt(qq + 1e-6) / std::sqrt(double{1} * c.key_dim);
      const double decay = std::exp(vectors[head] * rate_in);
      const double rate = is_ssd ? rate_in : 1 / (1 + std::exp(-double{gates[c.rate_column + head]}));
      for (uint32_t j = 0; j < c.value_dim; ++j) {
        double known = 0, sum = 0;
        for (uint32_t i = 0; i < c.key_dim; ++i) known += decay * s[i * c.value_dim + j] * k[i] * k_scale;
        const double added = is_ssd ? v[j] * rate : (v[j] - known) * rate;
        for (uint32_t i = 0; i < c.key_dim; ++i) {
          double& at = s[i * c.value_dim + j];
          at = decay * at + added * k[i] * k_scale;
          sum += at * q[i] * q_scale;
        }
        if (is_ssd) sum += double{vectors[2 * c.n_heads + head]} * v[j];
        y[row * values + head * c.value_dim + j] = sum;
      }
    }
  }
  return y;
}

}  // namespace doppler::kernels::testing
