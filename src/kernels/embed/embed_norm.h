// The input of a step of one row: x = scale * table[token] (embed.h) and h = norm(x) (rms_norm.h), which its first
// product reads. Error bounds: theirs. A token >= table.n gives zeros.
#pragma once

#include "kernels/common/forms.h"
#include "kernels/context.h"
#include "kernels/linear/linear.h"

namespace doppler::kernels {

struct EmbedNorm {
  const Weight& table;  // [vocab_size, hidden_dim]
  float scale = 1.0f;
  TensorView norm_weight;  // f32 [hidden_dim]
  float eps = 1e-5f;
  TensorView x;  // f32 [hidden_dim]
  NormedRow h;
  TensorView token;  // u32 [1]
};
// Works on one row whatever ctx.max_rows is.
Result<void> record(Context& ctx, const EmbedNorm& op);

}  // namespace doppler::kernels
