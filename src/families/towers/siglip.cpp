// SigLIP (Zhai et al. 2023): patches with learned positions, attention to all of a picture, LayerNorm before the
// branches, a feed-forward layer without gates; and what joins it to text models. R patches, P values of one, N tokens,
// H hidden, M merged, F feed-forward, J projector, T the text model's hidden.
#include "families/towers/tower_parts.h"

namespace doppler::families {

void build_siglip_patches(Builder& b) {
  Graph& g = b.graph;
  Value x = placed_patches(b);                                                       // [R, H]
  for (uint32_t i = 0; i < b.config.n_layers; ++i) x = norm_block(b, x, i);          // [R, H]
  g.set_logits(b.layer_norm(x, TensorId::kFinalNorm, TensorId::kFinalNormBias, 0));  // [R, H]
}

// Gemma 3: the mean of a token's patches.
void build_gemma3_tokens(Builder& b) {
  Graph& g = b.graph;
  const formats::ModelConfig& c = b.config;
  Value y = g.mean_parts(g.input(0, merged_dim(b)), c.hidden_dim);                             // [N, H]
  y = g.rms_norm(y, g.vector(TensorId::kMergerNorm, 0, c.hidden_dim), c.tower.projector_eps);  // [N, H]
  g.set_logits(b.linear(y, TensorId::kMergerDown, 0, c.tower.image_dim));                      // [N, T]
}

// Idefics 3 and SmolVLM: the patches of a token side by side.
void build_linear_tokens(Builder& b) {
  b.graph.set_logits(b.linear(b.graph.input(0, merged_dim(b)), TensorId::kMergerDown, 0,
                              b.config.tower.image_dim));  // [N, T]
}

// LFM2-VL and InternVL.
void build_norm_mlp_tokens(Builder& b) {
  Graph& g = b.graph;
  const formats::TowerConfig& t = b.config.tower;
  const uint32_t merged = merged_dim(b);
  Value y = g.layer_norm(g.input(0, merged), g.vector(TensorId::kMergerNorm, 0, merged),
                         g.vector(TensorId::kMergerNormBias, 0, merged), t.projector_eps);       // [N, M]
  y = g.activate(b.linear(y, TensorId::kMergerUp, 0, t.projector_dim), ActivationFn::kGeluErf);  // [N, J]
  g.set_logits(b.linear(y, TensorId::kMergerDown, 0, t.image_dim));                              // [N, T]
}

}  // namespace doppler::families
