// The vision tower of Qwen 3-VL and Qwen 3.5 (Qwen Team 2025): patches with a resampled table of learned positions and
// rotations by row and column, attention to all of a picture, LayerNorm before the branches. The patches of a token are
// merged behind the last layer and, added behind the text model's first layers, behind some others (deepstack).
// R patches, P values of one, N tokens, H hidden, M merged, F feed-forward, T the text model's hidden.
#include "families/family.h"

namespace doppler::families {
namespace {

Value block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.layer_norm(x, TensorId::kAttentionNorm, TensorId::kAttentionNormBias, i);  // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                          // [R, H] each
  q = b.rope(q, i);                                                                      // [R, H]
  k = b.rope(k, i);                                                                      // [R, H]
  const Value y = b.attention(q, k, v, i);                                               // [R, H]
  x = g.add(x, b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim));            // [R, H]
  h = b.layer_norm(x, TensorId::kFfnNorm, TensorId::kFfnNormBias, i);                    // [R, H]
  h = g.activate(b.linear(h, TensorId::kUp, i, b.config.ffn_dim), b.config.activation);  // [R, F]
  return g.add(x, b.linear(h, TensorId::kDown, i, b.config.hidden_dim));                 // [R, H]
}

uint32_t merged_dim(const Builder& b) { return formats::merged_patches(b.config) * b.config.hidden_dim; }

Value mlp(Builder& b, Value x, TensorId up, TensorId down, uint32_t i) {
  const Value h = b.graph.activate(b.linear(x, up, i, merged_dim(b)), ActivationFn::kGeluErf);  // [N, M]
  return b.linear(h, down, i, b.config.tower.image_dim);                                        // [N, T]
}

}  // namespace

void build_qwen3_vl_patches(Builder& b) {
  Graph& g = b.graph;
  const formats::ModelConfig& c = b.config;
  Value x = b.linear(g.input(0, c.tower.patch_values), TensorId::kPatchEmbed, 0, c.hidden_dim);  // [R, H]
  x = g.add_table_rows(x, g.vectors(TensorId::kPositions, 0, c.ctx_len, c.hidden_dim));          // [R, H]
  for (uint32_t i = 0; i < c.n_layers; ++i) {
    x = block(b, x, i);  // [R, H]
    for (const uint32_t layer : c.tower.deepstack) {
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
                                 i);                                               // [N, M]
    y = g.concat(y, mlp(b, x, TensorId::kDeepUp, TensorId::kDeepDown, i));  // [N, T more]
  }
  g.set_logits(y);
}

}  // namespace doppler::families
