// The sum of a row's experts (moe/expert_sum.h), added to the residual, and the norm of that: x += sum, y = x /
// sqrt(mean(x^2) + eps) * weight. One dispatch for expert_sum, add and rms_norm. Error bound: relative L2 < 1e-6.
#pragma once

#include "kernels/common/forms.h"
#include "kernels/moe/routes.h"

namespace doppler::kernels {

struct ExpertNorm {
  TensorView x;  // f32 [rows, n_used * n]: the experts' outputs, slot after slot
  Routes routes;
  TensorView shared = {};       // optional f32 [rows, n]
  TensorView shared_gate = {};  // optional f32 [rows, 1], with shared
  TensorView residual;          // f32 [rows, n], written too
  TensorView weight;            // f32 [n]
  Rows y;                       // [rows, n] as f32, q8 or both
  uint32_t n = 0;               // a multiple of 4
  float eps = 1e-5f;
};
Result<void> record(Context& ctx, const ExpertNorm& op);

}  // namespace doppler::kernels
