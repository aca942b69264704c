#include "layers/builder.h"

namespace doppler::layers {

bool Builder::is_sliding(uint32_t layer) const { return formats::is_sliding_layer(config, layer); }

Value Builder::norm(Value x, TensorId weight, uint32_t layer) {
  return graph.rms_norm(x, graph.vector(weight, layer, graph.info(x).columns), config.norm_eps);
}

Value Builder::layer_norm(Value x, TensorId weight, uint32_t layer) {
  return graph.layer_norm(x, graph.vector(weight, layer, graph.info(x).columns), {}, config.norm_eps);
}

Value Builder::layer_norm(Value x, TensorId weight, TensorId bias, uint32_t layer) {
  const uint32_t n = graph.info(x).columns;
  return graph.layer_norm(x, graph.vector(weight, layer, n), graph.vector(bias, layer, n), config.norm_eps);
}

Value Builder::head_norm(Value x, TensorId weight, uint32_t layer) {
  return graph.head_norm(x, graph.vector(weight, layer, config.head_dim), config.norm_eps);
}

Value Builder::linear(Value x, TensorId weight, uint32_t layer, uint32_t n) {
  return graph.linear(x, graph.matrix(weight, layer, n, graph.info(x).columns));
}

std::array<Value, 3> Builder::qkv(Value h, uint32_t layer) {
  const uint32_t q = config.n_heads * config.head_dim, kv = config.n_kv_heads * config.head_dim;
  const uint32_t hidden = graph.info(h).columns;
  return graph.linear(
      h, {graph.matrix(TensorId::kQ, layer, q, hidden), graph.matrix(TensorId::kK, layer, kv, hidden),
          graph.matrix(TensorId::kV, layer, kv, hidden)});
}

Value Builder::join(Value x, Value branch) {
  if (config.residual_scale != 1) branch = graph.scale(branch, {.factor = config.residual_scale});
  return graph.add(x, branch);
}

Value Builder::rope(Value x, uint32_t layer) {
  if (!formats::is_rotated_layer(config, layer)) return x;
  const bool local = is_sliding(layer) && config.local_rope.rotary_dim != 0;
  const formats::RopeConfig& rope = local ? config.local_rope : config.rope;
  return graph.rope(x, {.table = local ? 1u : 0u,
                        .head_dim = config.head_dim,
                        .rotary_dim = rope.rotary_dim,
                        .gpt_j_pairs = rope.pairing == formats::RopePairing::kGptJ});
}

Value Builder::attention(Value q, Value k, Value v, uint32_t layer) {
  const formats::QueryScaling& scaling = config.query_scaling;
  if (scaling.beta != 0) {
    q = graph.query_scale(
        q, {.beta = static_cast<float>(scaling.beta), .ctx_len = static_cast<uint32_t>(scaling.ctx_len)});
  }
  std::optional<graph::Vector> sinks;
  if (config.attention_sinks) sinks = graph.vector(TensorId::kSinks, layer, config.n_heads);
  return graph.attention(q, k, v,
                         {.layer = layer,
                          .n_heads = config.n_heads,
                          .n_kv_heads = config.n_kv_heads,
                          .head_dim = config.head_dim,
                          .scale = config.attention_scale,
                          .sliding_window = is_sliding(layer) ? config.sliding_window : 0,
                          .softcap = config.attention_softcap,
                          .bidirectional = config.bidirectional},
                         sinks);
}

}  // namespace doppler::layers
