#include "layers/builder.h"

namespace doppler::layers {

bool Builder::is_sliding(uint32_t layer) const { return formats::is_sliding_layer(config, layer); }

Value Builder::norm(Value x, TensorId weight, uint32_t layer) {
  const float eps = config.norm_eps / (config.residual_scale * config.residual_scale);
  return graph.rms_norm(x, graph.vector(weight, layer, graph.info(x).columns), eps);
}

Value Builder::layer_norm(Value x, TensorId weight, uint32_t layer) {
  return graph.layer_norm(x, graph.vector(weight, layer, graph.info(x).columns), {}, config.norm_eps);
}

Value Builder::layer_norm(Value x, TensorId weight, TensorId bias, uint32_t layer) {
  const uint32_t n = graph.info(x).columns;
  return graph.layer_norm(x, graph.vector(weight, layer, n), graph.vector(bias, layer, n), config.norm_eps);
}

Value Builder::head_norm(Value x, TensorId weight, uint32_t layer) {
  return graph.head_norm(x, graph.vector(weight, layer, formats::head_dim_of(config, layer)),
                         config.norm_eps);
}

Value Builder::linear(Value x, TensorId weight, uint32_t layer, uint32_t n) {
  return graph.linear(x, graph.matrix(weight, layer, n, graph.info(x).columns));
}

std::array<Value, 3> Builder::qkv(Value h, uint32_t layer) {
  const uint32_t head_dim = formats::head_dim_of(config, layer), hidden = graph.info(h).columns;
  const uint32_t q = config.n_heads * head_dim, kv = formats::kv_heads_of(config, layer) * head_dim;
  const TensorId v = config.values_are_keys && !is_sliding(layer) ? TensorId::kK : TensorId::kV;
  return graph.linear(h, {graph.matrix(TensorId::kQ, layer, q, hidden),
                          graph.matrix(TensorId::kK, layer, kv, hidden), graph.matrix(v, layer, kv, hidden)});
}

Value Builder::join(Value x, Value branch) { return graph.add(x, branch); }

Value Builder::rope(Value x, uint32_t layer) {
  if (!formats::is_rotated_layer(config, layer)) return x;
  const bool local = is_sliding(layer) && config.local_rope.rotary_dim != 0;
  const formats::RopeConfig& rope = local ? config.local_rope : config.rope;
  return graph.rope(x, {.table = local ? 1u : 0u,
                        .head_dim = formats::head_dim_of(config, layer),
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
  return graph.attention(q, k, v, attention_numbers(layer), sinks);
}

Value Builder::attention_to_earlier(Value q, uint32_t layer) {
  return graph.attention(q, attention_numbers(layer));
}

graph::Attention Builder::attention_numbers(uint32_t layer) const {
  return {.layer = layer,
          .cache_layer = formats::cache_layer(config, layer),
          .n_heads = config.n_heads,
          .n_kv_heads = formats::kv_heads_of(config, layer),
          .head_dim = formats::head_dim_of(config, layer),
          .scale = config.attention_scale,
          .sliding_window = is_sliding(layer) ? config.sliding_window : 0,
          .softcap = config.attention_softcap,
          .bidirectional = config.bidirectional};
}

}  // namespace doppler::layers
