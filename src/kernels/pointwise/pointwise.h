// Operations on each value alone, in place: for what no product does in its epilogue.
#pragma once

#include "base/activation_fn.h"
#include "kernels/context.h"

namespace doppler::kernels {

// x = factor * x, then softcap * tanh(x / softcap) where softcap is not 0. Error: relative 1e-7, of a softcap absolute
// 2e-7 of it.
struct Scale {
  TensorView x;  // f32 [rows, n]
  uint32_t n = 0;
  float factor = 1;
  float softcap = 0;
};
Result<void> record(Context& ctx, const Scale& op);

// x = p x^2 + b x where x > 0, else (expm1(min(x, e)) - x) n + b x (Huang and Schlag 2024). Error: relative L2 < 1e-6.
struct Xielu {
  TensorView x;        // f32 [rows, n]
  TensorView numbers;  // f32 [4]: p, n, b, e
  uint32_t n = 0;
};
Result<void> record(Context& ctx, const Xielu& op);

// x = activation(x), of feed-forward layers without gates. Error: relative L2 < 1e-6.
struct Activate {
  TensorView x;  // f32 [rows, n]
  uint32_t n = 0;
  ActivationFn activation = ActivationFn::kGeluErf;
};
Result<void> record(Context& ctx, const Activate& op);

}  // namespace doppler::kernels
