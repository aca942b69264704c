#include "layers/decoder.h"

#include "layers/next_token.h"
#include "layers/pooled.h"

namespace doppler::layers {

graph::Matrix embedding_table(Builder& b) {
  return b.graph.matrix(TensorId::kEmbedding, 0, b.config.vocab_size, b.config.hidden_dim);
}

graph::Matrix output_matrix(Builder& b) {
  const ModelConfig& c = b.config;
  return c.tied_embeddings ? embedding_table(b)
                           : b.graph.matrix(TensorId::kOutput, 0, c.vocab_size, c.hidden_dim);
}

Value embedding(Builder& b, float embedding_scale) {
  const Value x = b.graph.embed(embedding_table(b), embedding_scale / b.config.residual_scale);  // [R, H]
  if (!b.images) {
    b.graph.mark_hidden(x);
    return x;
  }
  const Value seen = b.graph.image_rows(x, {.index = 0});  // [R, H]
  b.graph.mark_hidden(seen);
  return seen;
}

void head(Builder& b, Value x) {
  Graph& g = b.graph;
  const ModelConfig& c = b.config;
  const Value h = b.norm(g.logits_rows(x), TensorId::kFinalNorm, 0);  // [R, H]
  if (formats::is_embedding_model(c)) return pooled(b, h);
  Value logits = g.linear(h, output_matrix(b));  // [R, V]
  if (c.logits_scale != 1 || c.final_softcap != 0) {
    logits = g.scale(logits, {.factor = c.logits_scale, .softcap = c.final_softcap});
  }
  g.set_logits(logits);
}

void decoder(Builder& b, float embedding_scale, Block block) {
  Value x = embedding(b, embedding_scale);  // [R, H]
  for (uint32_t i = 0; i < b.config.n_layers; ++i) {
    x = block(b, x, i);                                                              // [R, H]
    if (i < b.deepstack) x = b.graph.image_rows(x, {.index = i + 1, .adds = true});  // [R, H]
    b.graph.mark_hidden(x);
  }
  head(b, x);
  if (b.drafts) next_token(b, x, embedding_scale, block);
}

}  // namespace doppler::layers
