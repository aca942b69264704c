// LayerNorm of whole rows (Ba, Kiros and Hinton 2016): y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, the
// variance that of n values, not n - 1. Error bound: relative L2 < 1e-6.
#pragma once

#include <span>

#include "kernels/common/forms.h"
#include "kernels/context.h"
#include "kernels/variant.h"

namespace doppler::kernels {

struct LayerNorm {
  TensorView x;        // f32 [rows, n]
  TensorView weights;  // f32 [n], and after them the bias, f32 [n], if there is one
  Rows y;              // [rows, n] in the forms that are valid
  uint32_t n = 0;
  bool has_bias = false;
  float eps = 0;
};
Result<void> record(Context& ctx, const LayerNorm& op);

std::span<const Variant<LayerNorm>> layer_norm_variants();

}  // namespace doppler::kernels
