// LFM2 (Liquid AI 2025): most layers are short convolutions with two gates. The others are attention whose heads of q
// and k are normalised before their rotation. A feed-forward layer, gated or of experts, follows each. R rows, H
// hidden, Q and K: builder.h.
#include "families/family.h"
#include "layers/recurrent.h"

namespace doppler::families {
namespace {

Value lfm2_attention(Builder& b, Value h, uint32_t i) {
  auto [q, k, v] = b.qkv(h, i);                                         // [R, Q], [R, K], [R, K]
  q = b.rope(b.head_norm(q, TensorId::kQNorm, i), i);                   // [R, Q]
  k = b.rope(b.head_norm(k, TensorId::kKNorm, i), i);                   // [R, K]
  const Value y = b.attention(q, k, v, i);                              // [R, Q]
  return b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim);  // [R, H]
}

Value lfm2_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);  // [R, H]
  const bool is_conv = formats::is_recurrent_layer(b.config, i);
  x = g.add(x, is_conv ? layers::short_conv(b, h, i) : lfm2_attention(b, h, i));  // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                           // [R, H]
  return g.add(x, layers::feed_forward(b, h, i));                                 // [R, H]
}

}  // namespace

void build_lfm2(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, lfm2_block); }

}  // namespace doppler::families
