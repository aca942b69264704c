// Gemma 2 (Gemma Team 2024) differs from Llama: a branch is normalised also before it joins the residual, embeddings
// are multiplied by sqrt(H), and logits are capped. GLM 4 has the same block. R rows, H hidden, Q and K: builder.h.
#include <cmath>

#include "families/family.h"

namespace doppler::families {
namespace {

Value gemma2_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);                             // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                 // [R, Q], [R, K], [R, K]
  q = b.rope(q, i);                                                             // [R, Q]
  k = b.rope(k, i);                                                             // [R, K]
  const Value y = b.attention(q, k, v, i);                                      // [R, Q]
  Value branch = b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim);  // [R, H]
  x = g.add(x, b.norm(branch, TensorId::kPostAttentionNorm, i));                // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                         // [R, H]
  branch = layers::gated_mlp(b, h, i);                                          // [R, H]
  return g.add(x, b.norm(branch, TensorId::kPostFfnNorm, i));                   // [R, H]
}

}  // namespace

void build_gemma2(Builder& b) {
  layers::decoder(b, std::sqrt(static_cast<float>(b.config.hidden_dim)), gemma2_block);
}

void build_glm4(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, gemma2_block); }

}  // namespace doppler::families
