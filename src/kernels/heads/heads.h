// Norm and rotation of heads in place, among the columns where a product left them: for rotations and norms that
// rope_kv and attention do not do themselves. A norm of all columns is one of a single head.
#pragma once

#include "kernels/context.h"

namespace doppler::kernels {

// Columns [column, column + n_heads * head_dim) of f32 rows of `stride`.
struct HeadColumns {
  TensorView x;
  uint32_t stride = 0, column = 0;
  uint32_t n_heads = 0, head_dim = 0;
};

// Each head x = x / sqrt(mean(x^2) + eps) * weight. Error: relative L2 < 1e-6.
struct HeadNorm {
  HeadColumns heads;
  TensorView weight;  // f32 [head_dim]; invalid: ones
  float eps = 1e-6f;
};
Result<void> record(Context& ctx, const HeadNorm& op);

// Each head rotated as rope_kv does it, then times 1 + beta * ln(1 + floor(position / ctx_len)). Error: as rope_kv's.
struct Rotate {
  HeadColumns heads;
  TensorView table;         // make_rope_table() (rope/rope.h) of rotary_dim / 2 pairs
  uint32_t rotary_dim = 0;  // even, <= head_dim; 0: no rotation
  bool interleaved = false;
  float attention_factor = 1;
  float query_beta = 0;  // 0: no scaling
  uint32_t query_ctx_len = 1;
};
Result<void> record(Context& ctx, const Rotate& op);

}  // namespace doppler::kernels
