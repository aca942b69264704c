// Qwen3, dense (Qwen Team 2025): Llama's block, but each head of q and k is normalised before its rotation.
// R rows, H hidden, Q and K: builder.h.
#include "families/family.h"

namespace doppler::families {
namespace {

Value qwen3_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);                            // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                // [R, Q], [R, K], [R, K]
  q = b.rope(b.head_norm(q, TensorId::kQNorm, i), i);                          // [R, Q]
  k = b.rope(b.head_norm(k, TensorId::kKNorm, i), i);                          // [R, K]
  const Value y = b.attention(q, k, v, i);                                     // [R, Q]
  x = g.add(x, b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim));  // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                        // [R, H]
  return g.add(x, layers::feed_forward(b, h, i));                              // [R, H]
}

}  // namespace

void build_qwen3(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, qwen3_block); }

}  // namespace doppler::families
