// EXAONE 4 (LG AI Research 2025): norms stand only after the branches. Each head of q and k is normalised before its
// rotation, which layers that see everything may lack. R rows, H hidden, Q and K: builder.h.
#include "families/family.h"

namespace doppler::families {
namespace {

Value exaone4_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  auto [q, k, v] = b.qkv(x, i);                                                 // [R, Q], [R, K], [R, K]
  q = b.rope(b.head_norm(q, TensorId::kQNorm, i), i);                           // [R, Q]
  k = b.rope(b.head_norm(k, TensorId::kKNorm, i), i);                           // [R, K]
  const Value y = b.attention(q, k, v, i);                                      // [R, Q]
  Value branch = b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim);  // [R, H]
  x = g.add(x, b.norm(branch, TensorId::kPostAttentionNorm, i));                // [R, H]
  branch = layers::gated_mlp(b, x, i);                                          // [R, H]
  return g.add(x, b.norm(branch, TensorId::kPostFfnNorm, i));                   // [R, H]
}

}  // namespace

void build_exaone4(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, exaone4_block); }

}  // namespace doppler::families
