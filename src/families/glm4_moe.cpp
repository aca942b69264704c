// GLM 4.5 to 4.7 (Zhipu AI 2025): Llama's block with a mixture of experts after the first layers; each head of q and k
// may be normalised before the rotation of its first half. R rows, H hidden, Q and K: builder.h.
#include "families/family.h"

namespace doppler::families {
namespace {

Value glm4_moe_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);  // [R, H]
  auto [q, k, v] = b.qkv(h, i);                      // [R, Q], [R, K], [R, K]
  if (b.config.has_qk_norm) {
    q = b.head_norm(q, TensorId::kQNorm, i);  // [R, Q]
    k = b.head_norm(k, TensorId::kKNorm, i);  // [R, K]
  }
  const Value y = b.attention(b.rope(q, i), b.rope(k, i), v, i);               // [R, Q]
  x = g.add(x, b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim));  // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                        // [R, H]
  return g.add(x, layers::feed_forward(b, h, i));                              // [R, H]
}

}  // namespace

void build_glm4_moe(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, glm4_moe_block); }

}  // namespace doppler::families
