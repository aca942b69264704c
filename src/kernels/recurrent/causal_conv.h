// Causal depthwise convolution over the rows of each sequence, as Mamba, gated delta nets and LFM2 have before or in
// place of a recurrence:
//   y[p, c] = activation(bias[c] + sum over j of weight[c, j] * u[p - kernel + 1 + j, c])
// where u before position 0 is zero. The last kernel - 1 inputs of each sequence are its state, which the kernel moves
// on. Gated (LFM2): x holds B, C and v beside one another, u = B * v, and y is multiplied by C.
#pragma once

#include "base/activation_fn.h"
#include "kernels/common/forms.h"
#include "kernels/context.h"

namespace doppler::kernels {

// Slots that states are kept for: of plans for many sequences one each; of a model that drafts two (Context::drafts).
inline uint32_t state_slots(const Context& ctx) {
  if (ctx.tables.sequences != 0) return ctx.tables.sequences;
  return ctx.drafts ? 2 : 1;
}
// Runs of rows of one sequence that a step may have. `single`: each run is one row.
uint32_t most_runs(const Context& ctx, bool single);

struct CausalConv {
  TensorView x;  // f32 rows of x_stride; from x_column on n inputs, gated 3 n
  uint32_t x_stride = 0, x_column = 0;
  TensorView weight;    // f32 [n, kernel], then [n] where has_bias
  TensorView state;     // f32 [state_slots(), kernel - 1, n]
  Rows y;               // [rows, n] in the forms that are valid
  uint32_t n = 0;       // channels
  uint32_t kernel = 0;  // 2 to 16
  bool has_bias = false, gated = false;
  ActivationFn activation = ActivationFn::kNone;
  bool single_rows = false;  // each row of the step is of another sequence
};
Result<void> record(Context& ctx, const CausalConv& op);

}  // namespace doppler::kernels
