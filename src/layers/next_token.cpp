#include "layers/next_token.h"

namespace doppler::layers {

void next_token(Builder& b, Value x, float embedding_scale, Block block) {
  Graph& g = b.graph;
  const uint32_t layer = b.config.n_layers;
  g.begin_next();
  const Value h = b.norm(b.norm(x, TensorId::kFinalNorm, 0), TensorId::kNextHiddenNorm, layer);     // [R, H]
  const Value next = g.embed(embedding_table(b), embedding_scale / b.config.residual_scale, true);  // [R, H]
  const Value e = b.norm(next, TensorId::kNextEmbeddingNorm, layer);                                // [R, H]
  Value u = b.linear(g.concat(e, h), TensorId::kNextProjection, layer, b.config.hidden_dim);        // [R, H]
  u = block(b, u, layer);                                                                           // [R, H]
  g.set_next_logits(
      g.linear(b.norm(g.logits_rows(u), TensorId::kNextNorm, layer), output_matrix(b)));  // [R, V]
}

}  // namespace doppler::layers
