#include "layers/decoder.h"

#include "layers/pooled.h"

namespace doppler::layers {

void decoder(Builder& b, float embedding_scale, Block block) {
  Graph& g = b.graph;
  const ModelConfig& c = b.config;
  const graph::Matrix table = g.matrix(TensorId::kEmbedding, 0, c.vocab_size, c.hidden_dim);
  Value x = g.embed(table, embedding_scale);  // [R, H]
  g.mark_hidden(x);
  for (uint32_t i = 0; i < c.n_layers; ++i) {
    x = block(b, x, i);  // [R, H]
    g.mark_hidden(x);
  }
  const Value h = b.norm(g.logits_rows(x), TensorId::kFinalNorm, 0);  // [R, H]
  if (formats::is_embedding_model(c)) return pooled(b, h);
  const graph::Matrix head =
      c.tied_embeddings ? table : g.matrix(TensorId::kOutput, 0, c.vocab_size, c.hidden_dim);
  Value logits = g.linear(h, head);  // [R, V]
  if (c.logits_scale != 1 || c.final_softcap != 0) {
    logits = g.scale(logits, {.factor = c.logits_scale, .softcap = c.final_softcap});
  }
  g.set_logits(logits);
}

}  // namespace doppler::layers
