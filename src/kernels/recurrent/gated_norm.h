// RMSNorm of groups of a row, times silu of a gate (Gu and Dao's gated norm):
//   gate_first (Mamba 2): v = x silu(z), y = v / sqrt(mean(v^2) + eps) * weight
//   else (gated delta nets): y = x / sqrt(mean(x^2) + eps) * weight * silu(z)
// The means are of each group of `group` columns. Error bound: relative L2 < 1e-6.
#pragma once

#include "kernels/common/forms.h"
#include "kernels/context.h"

namespace doppler::kernels {

struct GatedNorm {
  TensorView x;      // f32 [rows, n]
  TensorView gates;  // f32 rows of gates_stride: z from gate_column on
  uint32_t gates_stride = 0, gate_column = 0;
  TensorView weight;  // f32 [n], or [group] where shares_weight
  Rows y;             // [rows, n] in the forms that are valid; q8 and f16 need groups of a multiple of 16
  uint32_t n = 0, group = 0;
  bool shares_weight = false, gate_first = false;
  float eps = 0;
};
Result<void> record(Context& ctx, const GatedNorm& op);

}  // namespace doppler::kernels
