// Parts that several pages of towers have. R patches, H hidden, F feed-forward.
#pragma once

#include "families/family.h"

namespace doppler::families {

// The length of a row with all patches of a token.
inline uint32_t merged_dim(const Builder& b) {
  return formats::merged_patches(b.config) * b.config.hidden_dim;
}

// The patches' values and their learned positions.
inline Value placed_patches(Builder& b) {
  Graph& g = b.graph;
  const formats::ModelConfig& c = b.config;
  const Value x =
      b.linear(g.input(0, c.tower.patch_values), TensorId::kPatchEmbed, 0, c.hidden_dim);   // [R, H]
  return g.add_table_rows(x, g.vectors(TensorId::kPositions, 0, c.ctx_len, c.hidden_dim));  // [R, H]
}

// LayerNorm, then attention to all of a picture, rotated if the tower rotates.
inline Value norm_attention(Builder& b, Value x, uint32_t i) {
  const Value h = b.layer_norm(x, TensorId::kAttentionNorm, TensorId::kAttentionNormBias, i);  // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                                // [R, H] each
  if (b.config.rope.rotary_dim != 0) {
    q = b.rope(q, i);  // [R, H]
    k = b.rope(k, i);  // [R, H]
  }
  return b.linear(b.attention(q, k, v, i), TensorId::kAttentionOut, i, b.config.hidden_dim);  // [R, H]
}

// LayerNorm before both branches, and a feed-forward layer without gates.
inline Value norm_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  x = g.add(x, norm_attention(b, x, i));                                                 // [R, H]
  Value h = b.layer_norm(x, TensorId::kFfnNorm, TensorId::kFfnNormBias, i);              // [R, H]
  h = g.activate(b.linear(h, TensorId::kUp, i, b.config.ffn_dim), b.config.activation);  // [R, F]
  return g.add(x, b.linear(h, TensorId::kDown, i, b.config.hidden_dim));                 // [R, H]
}

}  // namespace doppler::families
