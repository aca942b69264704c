// Towers with a class token besides the patches: CLIP (Radford et al. 2021) below LLaVA's projector, and InternViT
// (Chen et al. 2024) below InternVL's. Attention to all of a picture, LayerNorm before the branches, a feed-forward
// layer without gates. The class token is the last row, so that the projector reads the rows before it. The table of
// learned positions ends with its embedding and, in InternVL, with the bias of the patch embedding, which it does not
// get. R patches and the class token, P values of a patch, N tokens, H hidden, M merged, F feed-forward, J projector, T
// the text model's hidden.
#include "families/towers/tower_parts.h"

namespace doppler::families {
namespace {

Value quick_gelu(Graph& g, Value x) {  // x * sigmoid(1.702 x)
  constexpr float kSlope = 1.702f;
  return g.scale(g.activate(g.scale(x, {.factor = kSlope}), ActivationFn::kSilu), {.factor = 1 / kSlope});
}

}  // namespace

void build_clip_patches(Builder& b) {
  Graph& g = b.graph;
  Value x = b.layer_norm(placed_patches(b), TensorId::kPreNorm, TensorId::kPreNormBias, 0);  // [R, H]
  for (uint32_t i = 0; i < b.config.n_layers; ++i) {
    x = g.add(x, norm_attention(b, x, i));                                     // [R, H]
    Value h = b.layer_norm(x, TensorId::kFfnNorm, TensorId::kFfnNormBias, i);  // [R, H]
    h = quick_gelu(g, b.linear(h, TensorId::kUp, i, b.config.ffn_dim));        // [R, F]
    x = g.add(x, b.linear(h, TensorId::kDown, i, b.config.hidden_dim));        // [R, H]
  }
  g.set_logits(x);
}

void build_internvl_patches(Builder& b) {
  Graph& g = b.graph;
  const uint32_t hidden = b.config.hidden_dim;
  Value x = placed_patches(b);  // [R, H]
  for (uint32_t i = 0; i < b.config.n_layers; ++i) {
    x = g.add(x,
              g.multiply(norm_attention(b, x, i), g.vector(TensorId::kAttentionScale, i, hidden)));  // [R, H]
    Value h = b.layer_norm(x, TensorId::kFfnNorm, TensorId::kFfnNormBias, i);                        // [R, H]
    h = g.activate(b.linear(h, TensorId::kUp, i, b.config.ffn_dim), ActivationFn::kGeluErf);         // [R, F]
    h = b.linear(h, TensorId::kDown, i, hidden);                                                     // [R, H]
    x = g.add(x, g.multiply(h, g.vector(TensorId::kFfnScale, i, hidden)));                           // [R, H]
  }
  g.set_logits(x);
}

}  // namespace doppler::families
