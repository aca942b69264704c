// The text model of Gemma 4 (Gemma Team 2026). It differs from gemma3.cpp: values are normalised too, and layers that
// see everything have heads of another size. The last layers may read earlier keys and values. Experts may stand beside
// the feed-forward layer, and layers may have embeddings of each token. A layer's result is scaled. R rows, H hidden,
// Q, K: builder.h.
#include <cmath>

#include "families/family.h"
#include "layers/layer_inputs.h"

namespace doppler::families {
namespace {

// The feed-forward layer, and experts beside it, whose router reads the residual itself.
Value mlp_and_experts(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value y = layers::gated_mlp(b, b.norm(x, TensorId::kFfnNorm, i), i);  // [R, H]
  if (!formats::is_moe_layer(b.config, i)) return y;
  y = b.norm(y, TensorId::kDenseOutNorm, i);  // [R, H]
  const Value logits =
      g.scale(b.linear(b.norm(x, TensorId::kRouterNorm, i), TensorId::kRouter, i, b.config.moe.n_experts),
              {.factor = 1 / std::sqrt(static_cast<float>(b.config.hidden_dim))});  // [R, experts]
  const Value made = layers::mixture_of_experts(b, b.norm(x, TensorId::kExpertNorm, i), logits, i);  // [R, H]
  return g.add(y, b.norm(made, TensorId::kExpertOutNorm, i));                                        // [R, H]
}

}  // namespace

Value gemma_attention(Builder& b, Value h, uint32_t i) {
  const uint32_t head_dim = formats::head_dim_of(b.config, i);
  if (!formats::has_cache(b.config, i)) {
    const Value q = b.linear(h, TensorId::kQ, i, b.config.n_heads * head_dim);         // [R, Q]
    return b.attention_to_earlier(b.rope(b.head_norm(q, TensorId::kQNorm, i), i), i);  // [R, Q]
  }
  auto [q, k, v] = b.qkv(h, i);                           // [R, Q], [R, K], [R, K]
  q = b.rope(b.head_norm(q, TensorId::kQNorm, i), i);     // [R, Q]
  k = b.rope(b.head_norm(k, TensorId::kKNorm, i), i);     // [R, K]
  v = b.graph.head_norm(v, head_dim, b.config.norm_eps);  // [R, K]
  return b.attention(q, k, v, i);                         // [R, Q]
}

void build_gemma4(Builder& b) {
  Graph& g = b.graph;
  const uint32_t hidden = b.config.hidden_dim;
  Value x = layers::embedding(b, std::sqrt(static_cast<float>(hidden)));  // [R, H]
  const bool has_inputs = b.config.layer_input.dim != 0;
  Value inputs;
  if (has_inputs) inputs = layers::layer_inputs(b, x);  // [R, L P]
  for (uint32_t i = 0; i < b.config.n_layers; ++i) {
    const Value y = gemma_attention(b, b.norm(x, TensorId::kAttentionNorm, i), i);  // [R, Q]
    const Value branch = b.linear(y, TensorId::kAttentionOut, i, hidden);           // [R, H]
    x = g.add(x, b.norm(branch, TensorId::kPostAttentionNorm, i));                  // [R, H]
    x = g.add(x, b.norm(mlp_and_experts(b, x, i), TensorId::kPostFfnNorm, i));      // [R, H]
    if (has_inputs) x = g.add(x, layers::layer_input_branch(b, x, inputs, i));      // [R, H]
    x = g.multiply(x, g.vector(TensorId::kLayerScale, i, /*n=*/1));                 // [R, H]
    g.mark_hidden(x);
  }
  layers::head(b, x);
}

}  // namespace doppler::families
