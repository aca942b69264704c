// Copies around multi-head latent attention (DeepSeek-AI 2024), whose attention is on one head of rope_dim + rank
// values. Exact.
#pragma once

#include "kernels/context.h"

namespace doppler::kernels {

// Values [first, first + n) of each head.
struct HeadPart {
  TensorView x;  // f32 [rows, n_heads * head_dim]
  TensorView y;  // f32 [rows, n_heads * n]
  uint32_t n_heads = 0, head_dim = 0, first = 0, n = 0;
};
Result<void> record(Context& ctx, const HeadPart& op);

// q, k and v beside one another, as rope_kv reads them. For each head of q: the part that rotates, then its product
// with the key's matrix. For the key: the part that rotates, then the latent. For the value: zeros, then the latent.
struct LatentHeads {
  TensorView q;         // f32 [rows, n_heads * (nope_dim + rope_dim)]
  TensorView absorbed;  // f32 [rows, n_heads * rank]
  TensorView kv;  // f32 rows of kv_stride: rank values from latent_column on, rope_dim from key_column on
  uint32_t kv_stride = 0, latent_column = 0, key_column = 0;
  uint32_t n_heads = 0, nope_dim = 0, rope_dim = 0, rank = 0;
  TensorView qkv = {};  // f32 [rows, columns()]

  uint32_t columns() const { return (n_heads + 2) * (rope_dim + rank); }
};
Result<void> record(Context& ctx, const LatentHeads& op);

}  // namespace doppler::kernels
