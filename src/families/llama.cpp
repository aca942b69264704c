// The Llama family (Touvron et al. 2023): pre-norm RMSNorm, rotary attention with grouped heads, gated feed-forward.
// Answers for llama and mistral (whose window is one number in the config). R rows, H hidden, Q and K: builder.h.
#include "families/family.h"

namespace doppler::families {
namespace {

Value block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);                            // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                // [R, Q], [R, K], [R, K]
  q = b.rope(q, i);                                                            // [R, Q]
  k = b.rope(k, i);                                                            // [R, K]
  const Value y = b.attention(q, k, v, i);                                     // [R, Q]
  x = g.add(x, b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim));  // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                        // [R, H]
  return g.add(x, layers::gated_mlp(b, h, i));                                 // [R, H]
}

}  // namespace

void build_llama(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, block); }

}  // namespace doppler::families
