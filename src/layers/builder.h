// The means by which a family writes its forward pass: the graph, the numbers of the model, and its weights by name
// with the shapes that follow from the numbers. R rows, H hidden, F feed-forward, Q = n_heads * head_dim, K =
// n_kv_heads * head_dim, the last three as the layer has them.
#pragma once

#include <array>

#include "formats/architectures/config.h"
#include "graph/graph.h"

namespace doppler::layers {

using formats::ModelConfig;
using graph::Graph;
using graph::Value;

struct Builder {
  Graph& graph;
  const ModelConfig& config;
  bool drafts = false;     // the next-token layer is wanted
  bool images = false;     // rows may stand for pictures, whose values take the place of embeddings
  uint32_t deepstack = 0;  // of the first layers: more values of the pictures are added after each

  // RMSNorm by a vector of as many values as x has columns. With a residual scale, x must be the residual stream.
  Value norm(Value x, TensorId weight, uint32_t layer);  // [R, n]
  // RMSNorm of each head by a vector of head_dim values.
  Value head_norm(Value x, TensorId weight, uint32_t layer);           // [R, n]
  Value linear(Value x, TensorId weight, uint32_t layer, uint32_t n);  // [R, n]
  // LayerNorm; the first has no bias.
  Value layer_norm(Value x, TensorId weight, uint32_t layer);                 // [R, n]
  Value layer_norm(Value x, TensorId weight, TensorId bias, uint32_t layer);  // [R, n]

  std::array<Value, 3> qkv(Value h, uint32_t layer);  // [R, Q], [R, K], [R, K]; v may be another k
  // Rotates by the frequencies that the layer's attention goes with (is_sliding), if the layer rotates.
  Value rope(Value x, uint32_t layer);
  // x + branch. With a residual scale s in the config the stream is kept divided by s, so that branches join unscaled:
  // the embedding is divided by s, and the stream's norms have an epsilon of eps / s^2.
  Value join(Value x, Value branch);
  // Attention as the config says, over the layer's cache.
  Value attention(Value q, Value k, Value v, uint32_t layer);  // [R, Q]
  // The same over the cache of the earlier layer that the config says.
  Value attention_to_earlier(Value q, uint32_t layer);  // [R, Q]

  graph::Attention attention_numbers(uint32_t layer) const;
  // True if the window applies to a layer.
  bool is_sliding(uint32_t layer) const;
};

}  // namespace doppler::layers
