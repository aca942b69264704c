// MiniMax M2 (MiniMax 2025): Llama's block with a mixture of experts in each layer; all of q is normalised at once, and
// all of k, before a part of each head rotates. R rows, H hidden, Q and K: builder.h.
#include "families/family.h"

namespace doppler::families {
namespace {

Value minimax_m2_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);                            // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                // [R, Q], [R, K], [R, K]
  q = b.rope(b.norm(q, TensorId::kQNorm, i), i);                               // [R, Q]
  k = b.rope(b.norm(k, TensorId::kKNorm, i), i);                               // [R, K]
  const Value y = b.attention(q, k, v, i);                                     // [R, Q]
  x = g.add(x, b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim));  // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                        // [R, H]
  return g.add(x, layers::mixture_of_experts(b, h, i));                        // [R, H]
}

}  // namespace

void build_minimax_m2(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, minimax_m2_block); }

}  // namespace doppler::families
