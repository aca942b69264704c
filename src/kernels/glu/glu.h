// y = activate(gate) * up for gate and up side by side: the second half of SwiGLU and GeGLU (Shazeer 2020)
// where the matrix product did not do it itself. Error bound: relative L2 < 1e-6.
#pragma once

#include "kernels/common/forms.h"
#include "kernels/context.h"
#include "kernels/linear/linear.h"

namespace doppler::kernels {

struct Glu {
  TensorView gate_up;  // f32 [rows, 2 * n]: gates, then ups
  Rows y;              // [rows, n] in the forms that are valid; without f16, f32 is valid
  uint32_t n = 0;
  ActivationFn activate = ActivationFn::kSilu;
  // c above 0: y = g * sigmoid(1.702 g) * (u + 1) of g = min(gate, c) and u = up within +-c (OpenAI 2025).
  float limit = 0;
};
Result<void> record(Context& ctx, const Glu& op);

}  // namespace doppler::kernels
