// sum = x + y, element by element: the residual, if no product adds it itself. Exact but for the rounding of each sum.
#pragma once

#include "kernels/context.h"

namespace doppler::kernels {

struct Add {
  TensorView x, y;  // f32 [rows, n]
  TensorView sum;   // f32 [rows, n], neither x nor y
  uint32_t n = 0;
};
Result<void> record(Context& ctx, const Add& op);

}  // namespace doppler::kernels
