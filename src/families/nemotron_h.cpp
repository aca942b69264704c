// Nemotron-H (NVIDIA 2025) and Nemotron 3: a layer is one branch of four kinds: Mamba 2, attention that does not
// rotate, a feed-forward layer without gates, or experts without gates beside a shared one, which may work on rows of
// fewer values. The activation is the square of relu. R rows, H hidden, F and I feed-forward, E what experts read, Q
// and K:
// builder.h.
#include "families/family.h"
#include "layers/recurrent.h"

namespace doppler::families {
namespace {

Value squared_relu(Builder& b, Value x) { return b.graph.multiply(x, x, ActivationFn::kRelu); }

Value nemotron_h_attention(Builder& b, Value h, uint32_t i) {
  auto [q, k, v] = b.qkv(h, i);                                         // [R, Q], [R, K], [R, K]
  const Value y = b.attention(q, k, v, i);                              // [R, Q]
  return b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim);  // [R, H]
}

Value feed_forward(Builder& b, Value h, uint32_t i, TensorId up, TensorId down, uint32_t dim) {
  const Value y = squared_relu(b, b.linear(h, up, i, dim));  // [R, F]
  return b.linear(y, down, i, b.config.hidden_dim);          // [R, H]
}

Value experts(Builder& b, Value h, uint32_t i) {
  Graph& g = b.graph;
  const formats::MoeConfig& moe = b.config.moe;
  const uint32_t n = moe.n_experts, dim = moe.expert_dim, row = formats::expert_row_dim(b.config);
  const Value routes = layers::expert_routes(b, b.linear(h, TensorId::kRouter, i, n), i);  // [R, 2 n_used]
  const Value x = moe.row_dim != 0 ? b.linear(h, TensorId::kExpertsIn, i, row) : h;        // [R, E]
  const auto [up] = g.expert_linear(x, routes, {g.expert_matrices(TensorId::kExpertUp, i, n, dim, row)});
  const auto [down] = g.expert_linear(squared_relu(b, up), routes,  // [R, n_used I]
                                      {g.expert_matrices(TensorId::kExpertDown, i, n, row, dim)});
  Value y = g.expert_sum(down, routes);                                                  // [R, E]
  if (moe.row_dim != 0) y = b.linear(y, TensorId::kExpertsOut, i, b.config.hidden_dim);  // [R, H]
  return g.add(y, feed_forward(b, h, i, TensorId::kSharedUp, TensorId::kSharedDown, moe.shared_dim));
}

Value branch(Builder& b, Value h, uint32_t i) {
  if (formats::is_recurrent_layer(b.config, i)) return layers::mamba2(b, h, i);
  if (formats::is_moe_layer(b.config, i)) return experts(b, h, i);
  if (formats::has_mixer(b.config, i)) return nemotron_h_attention(b, h, i);
  return feed_forward(b, h, i, TensorId::kUp, TensorId::kDown, b.config.ffn_dim);
}

Value nemotron_h_block(Builder& b, Value x, uint32_t i) {
  return b.graph.add(x, branch(b, b.norm(x, TensorId::kAttentionNorm, i), i));  // [R, H]
}

}  // namespace

void build_nemotron_h(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, nemotron_h_block); }

}  // namespace doppler::families
