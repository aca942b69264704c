// The sum of a row's experts: y = sum over its slots of weight * expert's output, plus a shared expert's output if
// there is one, which a gate may multiply: sigmoid(gate) * shared. Error bound: relative L2 < 1e-6.
#pragma once

#include "kernels/moe/routes.h"

namespace doppler::kernels {

struct ExpertSum {
  TensorView x;  // f32 [rows, n_used * n]: the experts' outputs, slot after slot
  Routes routes;
  TensorView shared = {};       // optional f32 [rows, n]
  TensorView shared_gate = {};  // optional f32 [rows, 1], with shared
  TensorView y;                 // f32 [rows, n]
  uint32_t n = 0;
};
Result<void> record(Context& ctx, const ExpertSum& op);

}  // namespace doppler::kernels
