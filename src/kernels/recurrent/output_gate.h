// y = x * sigmoid(gate), with which attention's output is gated (Qwen Team 2025). Error bound: relative L2 < 1e-6.
#pragma once

#include "kernels/common/forms.h"
#include "kernels/context.h"

namespace doppler::kernels {

struct OutputGate {
  TensorView x;      // f32 [rows, n]
  TensorView gates;  // f32 rows of gates_stride: n gates from gate_column on
  uint32_t gates_stride = 0, gate_column = 0;
  Rows y;  // [rows, n] in the forms that are valid
  uint32_t n = 0;
};
Result<void> record(Context& ctx, const OutputGate& op);

}  // namespace doppler::kernels
