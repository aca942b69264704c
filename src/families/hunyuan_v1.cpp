// Hunyuan V1, dense and with experts (Tencent 2025): Llama's block, but each head of q and k is normalised after its
// rotation. R rows, H hidden, Q and K: builder.h.
#include "families/family.h"

namespace doppler::families {
namespace {

Value hunyuan_v1_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);                            // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                // [R, Q], [R, K], [R, K]
  q = b.head_norm(b.rope(q, i), TensorId::kQNorm, i);                          // [R, Q]
  k = b.head_norm(b.rope(k, i), TensorId::kKNorm, i);                          // [R, K]
  const Value y = b.attention(q, k, v, i);                                     // [R, Q]
  x = g.add(x, b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim));  // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                        // [R, H]
  return g.add(x, layers::feed_forward(b, h, i));                              // [R, H]
}

}  // namespace

void build_hunyuan_v1(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, hunyuan_v1_block); }

}  // namespace doppler::families
