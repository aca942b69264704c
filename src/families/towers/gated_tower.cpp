// Towers whose blocks are a text model's, with attention to all sides: Qwen 2.5-VL (Qwen Team 2025), most of whose
// layers see a window of a picture, Pixtral (Agrawal et al. 2024), below LLaVA's and Mistral 3's projectors, and GLM 4V
// (GLM-V Team 2025), with a resampled table of learned positions. R patches, P values of one, N tokens, H hidden, M
// merged, J projector, T the text model's hidden.
#include "families/towers/tower_parts.h"

namespace doppler::families {
namespace {

Value gated_tower_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);                            // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                // [R, H] each
  q = b.rope(q, i);                                                            // [R, H]
  k = b.rope(k, i);                                                            // [R, H]
  const Value y = b.attention(q, k, v, i);                                     // [R, H]
  x = g.add(x, b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim));  // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                        // [R, H]
  return g.add(x, layers::gated_mlp(b, h, i));                                 // [R, H]
}

Value patches(Builder& b) {
  return b.linear(b.graph.input(0, b.config.tower.patch_values), TensorId::kPatchEmbed, 0,
                  b.config.hidden_dim);  // [R, H]
}

Value blocks(Builder& b, Value x) {
  for (uint32_t i = 0; i < b.config.n_layers; ++i) x = gated_tower_block(b, x, i);  // [R, H]
  return x;
}

Value mlp(Builder& b, Value x, uint32_t width) {
  const Value h = b.graph.activate(b.linear(x, TensorId::kMergerUp, 0, width), ActivationFn::kGeluErf);
  return b.linear(h, TensorId::kMergerDown, 0, b.config.tower.image_dim);  // [N, T]
}

}  // namespace

void build_qwen2_5_vl_patches(Builder& b) {
  b.graph.set_logits(b.norm(blocks(b, patches(b)), TensorId::kMergerNorm, 0));  // [R, H]
}

void build_qwen2_5_vl_tokens(Builder& b) {
  b.graph.set_logits(mlp(b, b.graph.input(0, merged_dim(b)), merged_dim(b)));  // [N, T]
}

void build_pixtral_patches(Builder& b) {
  b.graph.set_logits(blocks(b, b.norm(patches(b), TensorId::kPreNorm, 0)));  // [R, H]
}

void build_pixtral_tokens(Builder& b) {
  b.graph.set_logits(mlp(b, b.graph.input(0, b.config.hidden_dim), b.config.tower.image_dim));  // [N, T]
}

void build_mistral3_patches(Builder& b) {
  Graph& g = b.graph;
  const Value x = blocks(b, b.norm(patches(b), TensorId::kPreNorm, 0));  // [R, H]
  const graph::Vector weight = g.vector(TensorId::kMergerNorm, 0, b.config.hidden_dim);
  g.set_logits(g.rms_norm(x, weight, b.config.tower.projector_eps));  // [R, H]
}

void build_mistral3_tokens(Builder& b) {
  const Value x =
      b.linear(b.graph.input(0, merged_dim(b)), TensorId::kMergerIn, 0, b.config.hidden_dim);  // [N, H]
  b.graph.set_logits(mlp(b, x, b.config.tower.image_dim));                                     // [N, T]
}

void build_glm4v_patches(Builder& b) {
  Graph& g = b.graph;
  Value x = b.norm(patches(b), TensorId::kPreNorm, 0);  // [R, H]
  x = g.add_table_rows(x,
                       g.vectors(TensorId::kPositions, 0, b.config.ctx_len, b.config.hidden_dim));  // [R, H]
  g.set_logits(b.norm(blocks(b, x), TensorId::kFinalNorm, 0));                                      // [R, H]
}

void build_glm4v_tokens(Builder& b) {
  Graph& g = b.graph;
  const formats::TowerConfig& t = b.config.tower;
  Value x = b.linear(g.input(0, merged_dim(b)), TensorId::kMergerIn, 0, t.image_dim);  // [N, T]
  x = b.linear(x, TensorId::kMergerMiddle, 0, t.image_dim);                            // [N, T]
  x = g.layer_norm(x, g.vector(TensorId::kMergerNorm, 0, t.image_dim),
                   g.vector(TensorId::kMergerNormBias, 0, t.image_dim), t.projector_eps);  // [N, T]
  x = g.activate(x, ActivationFn::kGeluErf);                                               // [N, T]
  auto [gate, up] =
      g.linear(x, {g.matrix(TensorId::kMergerGate, 0, t.projector_dim, t.image_dim),
                   g.matrix(TensorId::kMergerUp, 0, t.projector_dim, t.image_dim)});  // [N, J], [N, J]
  x = g.gated(gate, up, b.config.activation);                                         // [N, J]
  g.set_logits(b.linear(x, TensorId::kMergerDown, 0, t.image_dim));                   // [N, T]
}

}  // namespace doppler::families
