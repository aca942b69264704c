// Apertus (Swiss AI Initiative 2025): Qwen3's attention, and a feed-forward layer without gates, whose activation xIELU
// has numbers of its own in each layer. R rows, H hidden, F feed-forward, Q and K: builder.h.
#include "families/family.h"

namespace doppler::families {
namespace {

Value apertus_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  const uint32_t hidden = b.config.hidden_dim;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);               // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                   // [R, Q], [R, K], [R, K]
  q = b.rope(b.head_norm(q, TensorId::kQNorm, i), i);             // [R, Q]
  k = b.rope(b.head_norm(k, TensorId::kKNorm, i), i);             // [R, K]
  const Value y = b.attention(q, k, v, i);                        // [R, Q]
  x = g.add(x, b.linear(y, TensorId::kAttentionOut, i, hidden));  // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                           // [R, H]
  h = b.linear(h, TensorId::kUp, i, b.config.ffn_dim);            // [R, F]
  h = g.xielu(h, g.vector(TensorId::kXielu, i, 4));               // [R, F]
  return g.add(x, b.linear(h, TensorId::kDown, i, hidden));       // [R, H]
}

}  // namespace

void build_apertus(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, apertus_block); }

}  // namespace doppler::families
