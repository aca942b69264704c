#include "layers/latent_attention.h"

namespace doppler::layers {
namespace {

constexpr float kLatentEps = 1e-6f;  // of the latents' norms in transformers, whatever the model's

Value latent_norm(Builder& b, Value x, TensorId weight, uint32_t layer) {
  return b.graph.rms_norm(x, b.graph.vector(weight, layer, b.graph.info(x).columns), kLatentEps);
}

// Each head of [R, N k] times a matrix of its own: [R, N n].
Value of_heads(Builder& b, Value x, TensorId weight, uint32_t layer, uint32_t n, uint32_t k) {
  Graph& g = b.graph;
  const uint32_t heads = b.config.n_heads;
  const auto [y] = g.expert_linear(x, g.every_expert(heads), {g.expert_matrices(weight, layer, heads, n, k)});
  return y;
}

Value queries(Builder& b, Value h, uint32_t layer) {
  const formats::MlaConfig& m = b.config.mla;
  const uint32_t n = b.config.n_heads * (m.nope_dim + m.rope_dim);
  if (m.q_rank == 0) return b.linear(h, TensorId::kQ, layer, n);
  const Value c = b.linear(h, TensorId::kQDown, layer, m.q_rank);  // [R, q_rank]
  return b.linear(latent_norm(b, c, TensorId::kQDownNorm, layer), TensorId::kQUp, layer, n);
}

}  // namespace

Value latent_attention(Builder& b, Value h, uint32_t layer) {
  Graph& g = b.graph;
  const formats::MlaConfig& m = b.config.mla;
  const uint32_t hidden = g.info(h).columns, head_dim = b.config.head_dim;
  const Value heads = queries(b, h, layer);  // [R, N (nope + rope)]
  const auto [c, key] = g.linear(h, g.matrix(TensorId::kLatent, layer, m.kv_rank + m.rope_dim, hidden),
                                 {m.kv_rank, m.rope_dim});
  const Value latent = latent_norm(b, c, TensorId::kLatentNorm, layer);  // [R, rank]
  const Value nope =
      g.head_part(heads, {.head_dim = m.nope_dim + m.rope_dim, .n = m.nope_dim});            // [R, N nope]
  const Value absorbed = of_heads(b, nope, TensorId::kKeyUp, layer, m.kv_rank, m.nope_dim);  // [R, N rank]
  const auto [q, k, v] = g.latent_heads(heads, absorbed, latent, key,
                                        {.n_heads = b.config.n_heads,
                                         .nope_dim = m.nope_dim,
                                         .rope_dim = m.rope_dim,
                                         .rank = m.kv_rank});                       // [R, N (rope + rank)]
  Value y = b.attention(b.rope(q, layer), b.rope(k, layer), v, layer);              // [R, N (rope + rank)]
  y = g.head_part(y, {.head_dim = head_dim, .first = m.rope_dim, .n = m.kv_rank});  // [R, N rank]
  y = of_heads(b, y, TensorId::kValueUp, layer, m.value_dim, m.kv_rank);            // [R, N value]
  return b.linear(y, TensorId::kAttentionOut, layer, hidden);
}

}  // namespace doppler::layers
