// Qwen 3.5, dense and with experts (Qwen Team 2026): three gated delta nets, then attention with normalised heads that
// rotate in part and a sigmoid gate on its output. A feed-forward layer follows each. R rows, H hidden, Q and K:
// builder.h.
#include "families/family.h"
#include "layers/recurrent.h"

namespace doppler::families {
namespace {

Value qwen3_5_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);  // [R, H]
  const bool is_delta = formats::is_recurrent_layer(b.config, i);
  x = g.add(x, is_delta ? layers::gated_delta_net(b, h, i) : layers::gated_attention(b, h, i));  // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                                          // [R, H]
  return g.add(x, layers::feed_forward(b, h, i));                                                // [R, H]
}

}  // namespace

void build_qwen3_5(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, qwen3_5_block); }

}  // namespace doppler::families
