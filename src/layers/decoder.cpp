#include "layers/decoder.h"

#include "layers/pooled.h"

namespace doppler::layers {
namespace {

graph::Matrix table_of(Builder& b) {
  return b.graph.matrix(TensorId::kEmbedding, 0, b.config.vocab_size, b.config.hidden_dim);
}

}  // namespace

Value embedding(Builder& b, float embedding_scale) {
  const Value x = b.graph.embed(table_of(b), embedding_scale / b.config.residual_scale);  // [R, H]
  b.graph.mark_hidden(x);
  return x;
}

void head(Builder& b, Value x) {
  Graph& g = b.graph;
  const ModelConfig& c = b.config;
  const Value h = b.norm(g.logits_rows(x), TensorId::kFinalNorm, 0);  // [R, H]
  if (formats::is_embedding_model(c)) return pooled(b, h);
  const graph::Matrix head =
      c.tied_embeddings ? table_of(b) : g.matrix(TensorId::kOutput, 0, c.vocab_size, c.hidden_dim);
  Value logits = g.linear(h, head);  // [R, V]
  if (c.logits_scale != 1 || c.final_softcap != 0) {
    logits = g.scale(logits, {.factor = c.logits_scale, .softcap = c.final_softcap});
  }
  g.set_logits(logits);
}

void decoder(Builder& b, float embedding_scale, Block block) {
  Value x = embedding(b, embedding_scale);  // [R, H]
  for (uint32_t i = 0; i < b.config.n_layers; ++i) {
    x = block(b, x, i);  // [R, H]
    b.graph.mark_hidden(x);
  }
  head(b, x);
}

}  // namespace doppler::layers
