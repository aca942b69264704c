// SigLIP (Zhai et al. 2023): patches with learned positions, attention to all of a picture, LayerNorm before the branches,
// a feed-forward layer without gates; and what joins it to text models. R patches, P values of one, N tokens, H hidden,
// M merged, F feed-forward, J projector, T the text model's hidden.
#include "families/family.h"

namespace doppler::families {
namespace {

Value block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.layer_norm(x, TensorId::kAttentionNorm, TensorId::kAttentionNormBias, i);  // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                          // [R, H] each
  const Value y = b.attention(q, k, v, i);                                               // [R, H]
  x = g.add(x, b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim));            // [R, H]
  h = b.layer_norm(x, TensorId::kFfnNorm, TensorId::kFfnNormBias, i);                    // [R, H]
  h = g.activate(b.linear(h, TensorId::kUp, i, b.config.ffn_dim), b.config.activation);  // [R, F]
  return g.add(x, b.linear(h, TensorId::kDown, i, b.config.hidden_dim));                 // [R, H]
}

uint32_t merged_dim(const Builder& b) { return formats::merged_patches(b.config) * b.config.hidden_dim; }

}  // namespace

void build_siglip_patches(Builder& b) {
  Graph& g = b.graph;
  const formats::ModelConfig& c = b.config;
  Value x = b.linear(g.input(0, c.tower.patch_values), TensorId::kPatchEmbed, 0, c.hidden_dim);  // [R, H]
  x = g.add_table_rows(x, g.vectors(TensorId::kPositions, 0, c.ctx_len, c.hidden_dim));          // [R, H]
  for (uint32_t i = 0; i < c.n_layers; ++i) x = block(b, x, i);                                  // [R, H]
  g.set_logits(b.layer_norm(x, TensorId::kFinalNorm, TensorId::kFinalNormBias, 0));              // [R, H]
}

// Gemma 3: the mean of a token's patches.
void build_gemma3_tokens(Builder& b) {
  Graph& g = b.graph;
  const formats::ModelConfig& c = b.config;
  Value y = g.mean_parts(g.input(0, merged_dim(b)), c.hidden_dim);                                       // [N, H]
  y = g.rms_norm(y, g.vector(TensorId::kMergerNorm, 0, c.hidden_dim), c.tower.projector_eps);            // [N, H]
  g.set_logits(b.linear(y, TensorId::kMergerDown, 0, c.tower.image_dim));                                // [N, T]
}

// Idefics 3, SmolVLM and PaliGemma: the patches of a token side by side.
void build_linear_tokens(Builder& b) {
  b.graph.set_logits(
      b.linear(b.graph.input(0, merged_dim(b)), TensorId::kMergerDown, 0, b.config.tower.image_dim));  // [N, T]
}

// LFM2-VL.
void build_lfm2_vl_tokens(Builder& b) {
  Graph& g = b.graph;
  const formats::TowerConfig& t = b.config.tower;
  const uint32_t merged = merged_dim(b);
  Value y = g.layer_norm(g.input(0, merged), g.vector(TensorId::kMergerNorm, 0, merged),
                         g.vector(TensorId::kMergerNormBias, 0, merged), t.projector_eps);               // [N, M]
  y = g.activate(b.linear(y, TensorId::kMergerUp, 0, t.projector_dim), ActivationFn::kGeluErf);          // [N, J]
  g.set_logits(b.linear(y, TensorId::kMergerDown, 0, t.image_dim));                                      // [N, T]
}

}  // namespace doppler::families
