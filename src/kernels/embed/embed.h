// y[row] = scale * table[tokens[row]]: the embedding gather, from a table in any weight format.
// Exact for f32, f16, bf16; one f32 rounding for quantised formats. A token >= table.n gives zeros.
#pragma once

#include "kernels/context.h"
#include "kernels/linear/linear.h"

namespace doppler::kernels {

struct Embed {
  const Weight& table;  // [vocab_size, hidden_dim]
  TensorView tokens;    // u32 [max_rows]
  TensorView y;         // f32 [rows, hidden_dim]
  float scale = 1.0f;
};
Result<void> record(Context& ctx, const Embed& op);

}  // namespace doppler::kernels
