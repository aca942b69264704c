// The vision tower of Qwen 3-VL and Qwen 3.5 (Qwen Team 2025): patches with a resampled table of learned positions and
// rotations by row and column, attention to all of a picture, LayerNorm before the branches. The patches of a token are
// merged after the last layer. They are merged after some earlier layers too (deepstack), and these results are added
// after the text model's first layers. R patches, P values of one, N tokens, H hidden, M merged, F feed-forward, T the
// text model's hidden.
#include "families/towers/tower_parts.h"

namespace doppler::families {
namespace {

Value mlp(Builder& b, Value x, TensorId up, TensorId down, uint32_t i) {
  const Value h = b.graph.activate(b.linear(x, up, i, merged_dim(b)), ActivationFn::kGeluErf);  // [N, M]
  return b.linear(h, down, i, b.config.tower.image_dim);                                        // [N, T]
}

}  // namespace

void build_qwen3_vl_patches(Builder& b) {
  Graph& g = b.graph;
  Value x = placed_patches(b);  // [R, H]
  for (uint32_t i = 0; i < b.config.n_layers; ++i) {
    x = norm_block(b, x, i);  // [R, H]
    for (const uint32_t layer : b.config.tower.deepstack) {
      if (layer == i) g.mark_hidden(x);
    }
  }
  g.set_logits(b.layer_norm(x, TensorId::kMergerNorm, TensorId::kMergerNormBias, 0));  // [R, H]
}

void build_qwen3_vl_tokens(Builder& b) {
  Graph& g = b.graph;
  Value y = mlp(b, g.input(0, merged_dim(b)), TensorId::kMergerUp, TensorId::kMergerDown, 0);  // [N, T]
  for (uint32_t i = 0; i < b.config.tower.deepstack.size(); ++i) {
    const Value x = b.layer_norm(g.input(i + 1, merged_dim(b)), TensorId::kDeepNorm, TensorId::kDeepNormBias,
                                 i);                                        // [N, M]
    y = g.concat(y, mlp(b, x, TensorId::kDeepUp, TensorId::kDeepDown, i));  // [N, T more]
  }
  g.set_logits(y);
}

}  // namespace doppler::families
