// Granite 4 (IBM 2025): Mamba 2 in most layers and attention in the others, which rotates only in models without Mamba.
// After each comes a mixture of experts beside a shared one, or in small models only a gated layer. Granite's scales
// are the config's. R rows, H hidden, Q and K: builder.h.
#include "families/family.h"
#include "layers/recurrent.h"

namespace doppler::families {
namespace {

Value attention(Builder& b, Value h, uint32_t i) {
  auto [q, k, v] = b.qkv(h, i);                                         // [R, Q], [R, K], [R, K]
  const Value y = b.attention(b.rope(q, i), b.rope(k, i), v, i);        // [R, Q]
  return b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim);  // [R, H]
}

Value granite_hybrid_block(Builder& b, Value x, uint32_t i) {
  Value h = b.norm(x, TensorId::kAttentionNorm, i);  // [R, H]
  const bool is_mamba = formats::is_recurrent_layer(b.config, i);
  x = b.join(x, is_mamba ? layers::mamba2(b, h, i) : attention(b, h, i));  // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                    // [R, H]
  return b.join(x, layers::feed_forward(b, h, i));                         // [R, H]
}

}  // namespace

void build_granite_hybrid(Builder& b) { layers::decoder(b, b.config.embedding_scale, granite_hybrid_block); }

}  // namespace doppler::families
