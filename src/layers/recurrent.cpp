#include "layers/recurrent.h"

namespace doppler::layers {

using formats::RecurrentConfig;
using graph::Vector;

Value short_conv(Builder& b, Value h, uint32_t layer) {
  Graph& g = b.graph;
  const RecurrentConfig& c = b.config.recurrent;
  const uint32_t hidden = g.info(h).columns, n = c.conv_channels;
  const Value bcv = b.linear(h, TensorId::kConvIn, layer, 3 * n);  // [R, 3 n]
  const Vector weight = g.vectors(TensorId::kConv, layer, n, c.conv_kernel);
  const Value y =
      g.causal_conv(bcv, weight, {}, {.layer = layer, .kernel = c.conv_kernel, .is_gated = true});  // [R, n]
  return b.linear(y, TensorId::kConvOut, layer, hidden);                                            // [R, H]
}

Value gated_delta_net(Builder& b, Value h, uint32_t layer) {
  Graph& g = b.graph;
  const RecurrentConfig& c = b.config.recurrent;
  const uint32_t hidden = g.info(h).columns, heads = c.n_value_heads, values = heads * c.value_dim;
  const auto [qkv, z, rate, decay] =
      g.linear(h, {g.matrix(TensorId::kDeltaQkv, layer, c.conv_channels, hidden),
                   g.matrix(TensorId::kDeltaGate, layer, values, hidden),
                   g.matrix(TensorId::kDeltaRate, layer, heads, hidden),
                   g.matrix(TensorId::kDeltaDecay, layer, heads, hidden)});
  const Vector weight = g.vectors(TensorId::kConv, layer, c.conv_channels, c.conv_kernel);
  const Value x = g.causal_conv(
      qkv, weight, {},
      {.layer = layer, .kernel = c.conv_kernel, .activation = ActivationFn::kSilu});  // [R, q + k + v]
  Value y = g.gated_delta(x, decay, rate, g.vector(TensorId::kStateDecay, layer, heads),
                          g.vector(TensorId::kStateTimeBias, layer, heads),
                          {.layer = layer,
                           .n_heads = heads,
                           .n_key_heads = c.n_key_heads,
                           .key_dim = c.key_dim,
                           .value_dim = c.value_dim,
                           .is_tiled = c.is_tiled});  // [R, values]
  y = g.gated_norm(y, z, g.vector(TensorId::kStateNorm, layer, c.value_dim),
                   {.eps = b.config.norm_eps, .group = c.value_dim});  // [R, values]
  return b.linear(y, TensorId::kStateOut, layer, hidden);              // [R, H]
}

Value mamba2(Builder& b, Value h, uint32_t layer) {
  Graph& g = b.graph;
  const RecurrentConfig& c = b.config.recurrent;
  const uint32_t hidden = g.info(h).columns, heads = c.n_value_heads, values = heads * c.value_dim;
  const graph::Matrix in = g.matrix(TensorId::kMambaIn, layer, values + c.conv_channels + heads, hidden);
  const auto [z, xbc, dt] = g.linear(h, in, {values, c.conv_channels, heads});
  const Vector weight = g.vectors(TensorId::kConv, layer, c.conv_channels, c.conv_kernel);
  const Value x = g.causal_conv(
      xbc, weight, g.vector(TensorId::kConvBias, layer, c.conv_channels),
      {.layer = layer, .kernel = c.conv_kernel, .activation = ActivationFn::kSilu});  // [R, x + B + C]
  Value y =
      g.mamba2(x, dt, g.vector(TensorId::kStateDecay, layer, heads),
               g.vector(TensorId::kStateTimeBias, layer, heads), g.vector(TensorId::kStateSkip, layer, heads),
               {.layer = layer,
                .n_heads = heads,
                .n_key_heads = c.n_key_heads,
                .key_dim = c.key_dim,
                .value_dim = c.value_dim});  // [R, values]
  y = g.gated_norm(
      y, z, g.vector(TensorId::kStateNorm, layer, values),
      {.eps = b.config.norm_eps, .group = values / c.n_key_heads, .gate_first = true});  // [R, values]
  return b.linear(y, TensorId::kStateOut, layer, hidden);                                // [R, H]
}

Value gated_attention(Builder& b, Value h, uint32_t layer) {
  Graph& g = b.graph;
  const uint32_t hidden = g.info(h).columns, n = b.config.n_heads * b.config.head_dim;
  const uint32_t kv = b.config.n_kv_heads * b.config.head_dim;
  auto [gate, q, k, v] =
      g.linear(h, {g.matrix(TensorId::kAttentionGate, layer, n, hidden),
                   g.matrix(TensorId::kQ, layer, n, hidden), g.matrix(TensorId::kK, layer, kv, hidden),
                   g.matrix(TensorId::kV, layer, kv, hidden)});      // [R, Q], [R, Q], [R, K], [R, K]
  q = b.rope(b.head_norm(q, TensorId::kQNorm, layer), layer);        // [R, Q]
  k = b.rope(b.head_norm(k, TensorId::kKNorm, layer), layer);        // [R, K]
  const Value y = g.output_gate(b.attention(q, k, v, layer), gate);  // [R, Q]
  return b.linear(y, TensorId::kAttentionOut, layer, hidden);        // [R, H]
}

}  // namespace doppler::layers
