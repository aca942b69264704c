// BERT (Devlin et al. 2018): positions and token types with learned embeddings, attention to both sides, norms after
// the branches, a feed-forward layer without gates. R rows, H hidden, F feed-forward, Q and K: builder.h.
#include "families/family.h"
#include "layers/pooled.h"

namespace doppler::families {
namespace {

Value bert_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  auto [q, k, v] = b.qkv(x, i);                                                // [R, Q], [R, K], [R, K]
  const Value y = b.attention(q, k, v, i);                                     // [R, Q]
  x = g.add(x, b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim));  // [R, H]
  x = b.layer_norm(x, TensorId::kPostAttentionNorm, TensorId::kPostAttentionNormBias, i);            // [R, H]
  const Value h = g.activate(b.linear(x, TensorId::kUp, i, b.config.ffn_dim), b.config.activation);  // [R, F]
  x = g.add(x, b.linear(h, TensorId::kDown, i, b.config.hidden_dim));                                // [R, H]
  return b.layer_norm(x, TensorId::kPostFfnNorm, TensorId::kPostFfnNormBias, i);                     // [R, H]
}

}  // namespace

void build_bert(Builder& b) {
  Graph& g = b.graph;
  const formats::ModelConfig& c = b.config;
  Value x = g.embed(g.matrix(TensorId::kEmbedding, 0, c.vocab_size, c.hidden_dim), 1.0f);  // [R, H]
  x = g.add_positions(x, g.vectors(TensorId::kPositions, 0, c.ctx_len, c.hidden_dim),
                      g.vectors(TensorId::kTokenTypes, 0, c.n_token_types, c.hidden_dim));  // [R, H]
  x = b.layer_norm(x, TensorId::kEmbeddingNorm, TensorId::kEmbeddingNormBias, 0);           // [R, H]
  g.mark_hidden(x);
  for (uint32_t i = 0; i < c.n_layers; ++i) {
    x = bert_block(b, x, i);  // [R, H]
    g.mark_hidden(x);
  }
  layers::pooled(b, g.logits_rows(x));
}

}  // namespace doppler::families
