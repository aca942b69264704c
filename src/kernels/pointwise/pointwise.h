// Operations on each value, for what no product does in its epilogue.
#pragma once

#include "base/activation_fn.h"
#include "kernels/context.h"

namespace doppler::kernels {

// In place: x = factor * x, then softcap * tanh(x / softcap) if softcap is not 0. Error: relative 1e-7; with a softcap
// absolute, 2e-7 times softcap.
struct Scale {
  TensorView x;  // f32 [rows, n]
  uint32_t n = 0;
  float factor = 1;
  float softcap = 0;
};
Result<void> record(Context& ctx, const Scale& op);

// In place: x = p x^2 + b x where x > 0, else (expm1(min(x, e)) - x) n + b x (Huang and Schlag 2024). Error: relative
// L2 < 1e-6.
struct Xielu {
  TensorView x;        // f32 [rows, n]
  TensorView numbers;  // f32 [4]: p, n, b, e
  uint32_t n = 0;
};
Result<void> record(Context& ctx, const Xielu& op);

// Columns [column, column + n) of f32 rows of `stride`; stride 0: all rows are one.
struct PartOfRows {
  TensorView buffer;
  uint32_t stride = 0, column = 0;
};

// y = activation(x) * u. Error: relative L2 < 1e-6.
struct Multiply {
  PartOfRows x, u;
  TensorView y;  // f32 [rows, n]
  uint32_t n = 0;
  bool is_one = false;  // u is one number a row
  ActivationFn activation = ActivationFn::kNone;
};
Result<void> record(Context& ctx, const Multiply& op);

// Rows of x beside rows of y: out[row] = x's n columns, then y's m. Exact.
struct Concat {
  PartOfRows x, y;
  TensorView out;  // f32 [rows, n + m]
  uint32_t n = 0, m = 0;
};
Result<void> record(Context& ctx, const Concat& op);

// In place: x = max(x - (mean + deviations * standard deviation), 0) of each row's n values. Error: relative L2 < 1e-5.
struct Sparsify {
  PartOfRows x;
  uint32_t n = 0;
  float deviations = 0;
};
Result<void> record(Context& ctx, const Sparsify& op);

// x = activation(x), of feed-forward layers without gates. Error: relative L2 < 1e-6.
struct Activate {
  TensorView x;  // f32 [rows, n]
  uint32_t n = 0;
  ActivationFn activation = ActivationFn::kGeluErf;
};
Result<void> record(Context& ctx, const Activate& op);

}  // namespace doppler::kernels
