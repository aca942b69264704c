// ModernBERT (Warner et al. 2024): attention to both sides, most layers within a window, LayerNorm before the branches,
// but before the first attention none, since the embeddings are normalised. R rows, H hidden, Q and K: builder.h.
#include "families/family.h"
#include "layers/pooled.h"

namespace doppler::families {
namespace {

Value modernbert_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = i == 0 ? x : b.layer_norm(x, TensorId::kAttentionNorm, i);         // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                // [R, Q], [R, K], [R, K]
  q = b.rope(q, i);                                                            // [R, Q]
  k = b.rope(k, i);                                                            // [R, K]
  const Value y = b.attention(q, k, v, i);                                     // [R, Q]
  x = g.add(x, b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim));  // [R, H]
  h = b.layer_norm(x, TensorId::kFfnNorm, i);                                  // [R, H]
  return g.add(x, layers::gated_mlp(b, h, i));                                 // [R, H]
}

}  // namespace

void build_modernbert(Builder& b) {
  Graph& g = b.graph;
  const formats::ModelConfig& c = b.config;
  Value x = g.embed(g.matrix(TensorId::kEmbedding, 0, c.vocab_size, c.hidden_dim), 1.0f);  // [R, H]
  x = b.layer_norm(x, TensorId::kEmbeddingNorm, 0);                                        // [R, H]
  g.mark_hidden(x);
  for (uint32_t i = 0; i < c.n_layers; ++i) {
    x = modernbert_block(b, x, i);  // [R, H]
    g.mark_hidden(x);
  }
  layers::pooled(b, b.layer_norm(g.logits_rows(x), TensorId::kFinalNorm, 0));
}

}  // namespace doppler::families
