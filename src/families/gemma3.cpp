// The text model of the Gemma 3 family (Gemma Team 2025). It differs from llama.cpp (the file beside this one):
// embeddings are multiplied by sqrt(H), gates are GELU, each head of q and k is normalised before its rotation, and a
// branch is normalised before it joins the residual. Most layers see a window and rotate by frequencies of their own. R
// rows, H hidden, Q and K: builder.h.
#include <cmath>

#include "families/family.h"

namespace doppler::families {
namespace {

Value gemma3_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);                             // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                 // [R, Q], [R, K], [R, K]
  q = b.rope(b.head_norm(q, TensorId::kQNorm, i), i);                           // [R, Q]
  k = b.rope(b.head_norm(k, TensorId::kKNorm, i), i);                           // [R, K]
  const Value y = b.attention(q, k, v, i);                                      // [R, Q]
  Value branch = b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim);  // [R, H]
  x = g.add(x, b.norm(branch, TensorId::kPostAttentionNorm, i));                // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                         // [R, H]
  branch = layers::gated_mlp(b, h, i);                                          // [R, H]
  return g.add(x, b.norm(branch, TensorId::kPostFfnNorm, i));                   // [R, H]
}

}  // namespace

void build_gemma3(Builder& b) {
  layers::decoder(b, std::sqrt(static_cast<float>(b.config.hidden_dim)), gemma3_block);
}

}  // namespace doppler::families
