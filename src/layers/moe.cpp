#include "layers/moe.h"

#include "layers/gated_mlp.h"

namespace doppler::layers {
namespace {

// The expert that every token goes through.
Value shared_expert(Builder& b, Value h, uint32_t layer) {
  Graph& g = b.graph;
  const uint32_t hidden = g.info(h).columns, dim = b.config.moe.shared_dim;
  const auto [gate, up] = g.linear(h, {g.matrix(TensorId::kSharedGate, layer, dim, hidden),
                                       g.matrix(TensorId::kSharedUp, layer, dim, hidden)});  // [R, S], [R, S]
  return b.linear(g.gated(gate, up, b.config.activation), TensorId::kSharedDown, layer, hidden);
}

}  // namespace

Value mixture_of_experts(Builder& b, Value h, uint32_t layer) {
  const Value logits = b.linear(h, TensorId::kRouter, layer, b.config.moe.n_experts);  // [R, experts]
  return mixture_of_experts(b, h, logits, layer);
}

Value expert_routes(Builder& b, Value logits, uint32_t layer) {
  Graph& g = b.graph;
  const formats::MoeConfig& moe = b.config.moe;
  std::optional<graph::Vector> bias, scales;
  if (moe.has_score_bias) bias = g.vector(TensorId::kRouterBias, layer, moe.n_experts);
  if (moe.is_beside_dense) scales = g.vector(TensorId::kExpertScale, layer, moe.n_experts);
  return g.route(logits,
                 {.n_used = moe.n_used,
                  .score = moe.score,
                  .n_groups = moe.n_groups,
                  .groups_used = moe.groups_used,
                  .group_score = moe.group_score,
                  .norm_weights = moe.norm_weights,
                  .norm_epsilon = moe.norm_epsilon,
                  .weight_scale = moe.weight_scale},
                 bias, scales);
}

Value mixture_of_experts(Builder& b, Value h, Value logits, uint32_t layer) {
  Graph& g = b.graph;
  const formats::MoeConfig& moe = b.config.moe;
  const uint32_t experts = moe.n_experts, dim = moe.expert_dim, hidden = g.info(h).columns;
  const Value routes = expert_routes(b, logits, layer);  // [R, 2 n_used]
  const auto [gate, up] = g.expert_linear(
      h, routes,
      {g.expert_matrices(TensorId::kExpertGate, layer, experts, dim, hidden),
       g.expert_matrices(TensorId::kExpertUp, layer, experts, dim, hidden)});  // [R, n_used I] each
  const auto [y] = g.expert_linear(g.gated(gate, up, b.config.activation, b.config.swiglu_limit), routes,
                                   {g.expert_matrices(TensorId::kExpertDown, layer, experts, hidden, dim)});
  std::optional<Value> shared, shared_gate;
  if (moe.shared_dim != 0) shared = shared_expert(b, h, layer);                             // [R, H]
  if (moe.shared_gate) shared_gate = b.linear(h, TensorId::kSharedRouter, layer, /*n=*/1);  // [R, 1]
  return g.expert_sum(y, routes, shared, shared_gate);
}

Value feed_forward(Builder& b, Value h, uint32_t layer) {
  return formats::is_moe_layer(b.config, layer) ? mixture_of_experts(b, h, layer) : gated_mlp(b, h, layer);
}

}  // namespace doppler::layers
