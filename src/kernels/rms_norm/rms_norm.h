// The norm of rows, y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019), and the sum of the residual
// stream and a branch with what follows it, in one dispatch. Error bound: relative L2 < 1e-6 against double precision.
#pragma once

#include <variant>

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
  TensorView x;       // f32 [rows, n]
  TensorView weight;  // f32 [n]
  Rows y;             // [rows, n] in the forms that are valid; without f16, f32 is valid
  uint32_t n = 0;
  float eps = 1e-5f;
  SelectedRows rows = SelectedRows::kAll;
};
Result<void> record(Context& ctx, const RmsNorm& op);

// The term that is added to the residual stream.
struct Branch {
  std::variant<TensorView, SplitSums> values;  // f32 [rows, n], or what a product left to be added up
  TensorView norm_weight = {};  // optional f32 [n]: the norm of the values is added (post-norms, as in Gemma)
};
// The step after the sum: its forms beside f32 in which products read it,
struct SumForms {
  TensorView q8 = {}, f16 = {};
};
// or its norm.
struct NormOfSum {
  TensorView weight;  // f32 [n]
  Rows y;             // as in RmsNorm
  SelectedRows rows = SelectedRows::kAll;
};
using SumEpilogue = std::variant<SumForms, NormOfSum>;

struct AddBranch {
  TensorView x;  // f32 [rows, n]: x = (x + branch) * scale
  Branch branch;
  TensorView scale = {};  // optional f32 [1]; all rows only
  SumEpilogue then;
  uint32_t n = 0;
  float eps = 1e-5f;  // of both norms
};
Result<void> record(Context& ctx, const AddBranch& op);

}  // namespace doppler::kernels
