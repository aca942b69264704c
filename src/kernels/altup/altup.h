// AltUp (Baykal et al. 2023) as Gemma 3n has it: S = kAltupStreams streams of the residual; layers compute the first.
// Streams lie one after another, f32 [S, max_rows, n]. m = tanh(router_scale * router), of S numbers a row.
#pragma once

#include <array>

#include "base/altup.h"
#include "kernels/context.h"

namespace doppler::kernels {

// The begin and the end of the streams. The first of x gives its magnitude to the others:
//   t_0 = x_0, t_j = x_j * sqrt(mean(x_0^2) / max(mean(x_j^2), 1e-5)).
// y is the streams t or, with is_mean, their mean, f32 [rows, n]. Error: relative L2 < 1e-6.
struct AltupMatch {
  std::array<TensorView, kAltupStreams> x;  // f32 [rows, n] each
  TensorView y;
  uint32_t n = 0;
  bool is_mean = false;
};
Result<void> record(Context& ctx, const AltupMatch& op);

// y_j = x_j + sum over k of c[S j + k] * x_k, c = weight m. added joins all x but the first before. Error: relative L2
// < 1e-6.
struct AltupPredict {
  TensorView x, y;        // streams
  TensorView added = {};  // optional f32 [rows, n]
  TensorView router;      // f32 [rows, S]
  TensorView weight;      // f32 [S^2, S]
  uint32_t n = 0;
  float router_scale = 1;
};
Result<void> record(Context& ctx, const AltupPredict& op);

// y_j = x_j + (made - x_0) * (1 + c[j]), c = weight m. Error: relative L2 < 1e-6.
struct AltupCorrect {
  TensorView x, y;    // streams
  TensorView made;    // f32 [rows, n]
  TensorView router;  // f32 [rows, S]
  TensorView weight;  // f32 [S, S]
  uint32_t n = 0;
  float router_scale = 1;
};
Result<void> record(Context& ctx, const AltupCorrect& op);

}  // namespace doppler::kernels
