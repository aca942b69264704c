// y = x / sqrt(mean(x^2) + eps) * weight, per row (Zhang and Sennrich 2019), optionally after a residual add, which may
// be normalised itself first (post-norms, as Gemma has them), and whose sum may be multiplied by one number of the model's.
// Without a weight there is no norm: the sum alone is made, with the forms in which products read it.
// Error bound: relative L2 < 1e-6 against double precision.
#pragma once

#include "kernels/common/forms.h"
#include "kernels/context.h"

namespace doppler::kernels {

// The rows of x that are normalised, into y's rows 0, 1, ...: before the head only those that choose a token.
enum class SelectedRows : uint8_t {
  kAll,
  kLast,     // row `rows - 1` of the step
  kSampled,  // those that the tables of many sequences name (common/step_tables.h), ctx.tables.sequences at most
};

struct RmsNorm {
  TensorView x;        // f32 [rows, n]
  TensorView add;      // optional f32 [rows, n]: x += add first (x is then written too)
  SplitSums add_sums;  // or, with splits, in place of it what a product left to be added up
  TensorView
      add_weight;  // optional f32 [n], with add: x += add / sqrt(mean(add^2) + eps) * add_weight instead
  TensorView sum_scale;  // optional f32 [1], with add and all rows: the sum times it is x
  TensorView weight;     // f32 [n]; none, with add: y = x, whose f32 form is x itself
  Rows y;                // [rows, n] in the forms that are valid; of a norm without f16, f32 is one of them
  uint32_t n = 0;
  float eps = 1e-5f;
  SelectedRows rows = SelectedRows::kAll;
};
Result<void> record(Context& ctx, const RmsNorm& op);

}  // namespace doppler::kernels
