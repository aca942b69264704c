// The vision tower of Gemma 4 (Gemma Team 2026): patches with learned positions of columns and of rows, rotations by
// row and column, norms around the branches, attention to all of a picture. A matrix may have limits of the values that
// it reads and makes. A token is the mean of its patches. R patches, P values of one, N tokens, H hidden, F
// feed-forward, M merged, T the text model's hidden.
#include <array>
#include <cmath>

#include "families/towers/tower_parts.h"

namespace doppler::families {
namespace {

// A matrix and its limits.
struct Limited {
  TensorId matrix, limits;
};
constexpr Limited kQ = {TensorId::kQ, TensorId::kQLimits}, kK = {TensorId::kK, TensorId::kKLimits},
                  kV = {TensorId::kV, TensorId::kVLimits},
                  kOut = {TensorId::kAttentionOut, TensorId::kAttentionOutLimits},
                  kGate = {TensorId::kGate, TensorId::kGateLimits},
                  kUp = {TensorId::kUp, TensorId::kUpLimits},
                  kDown = {TensorId::kDown, TensorId::kDownLimits};

Value limited(Builder& b, Value x, const Limited& of, uint32_t i, uint32_t n) {
  if (!b.config.tower.has_limits) return b.linear(x, of.matrix, i, n);  // [R, n]
  Graph& g = b.graph;
  const graph::Vector limits = g.vector(of.limits, i, formats::kLimitCount);
  return g.clamp(b.linear(g.clamp(x, limits, 0), of.matrix, i, n), limits, 2);  // [R, n]
}

std::array<Value, 3> limited_qkv(Builder& b, Value h, uint32_t i) {
  if (!b.config.tower.has_limits) return b.qkv(h, i);  // [R, H] each
  Graph& g = b.graph;
  const uint32_t n = b.config.hidden_dim;
  Value qkv = g.concat(limited(b, h, kQ, i, n), limited(b, h, kK, i, n));  // [R, 2 H]
  qkv = g.concat(qkv, limited(b, h, kV, i, n));                            // [R, 3 H]
  return {g.slice(qkv, 0, n), g.slice(qkv, n, n), g.slice(qkv, 2 * n, n)};
}

Value gemma4_tower_attention(Builder& b, Value h, uint32_t i) {
  const formats::ModelConfig& c = b.config;
  auto [q, k, v] = limited_qkv(b, h, i);                              // [R, H] each
  q = b.rope(b.head_norm(q, TensorId::kQNorm, i), i);                 // [R, H]
  k = b.rope(b.head_norm(k, TensorId::kKNorm, i), i);                 // [R, H]
  v = b.graph.head_norm(v, c.head_dim, c.norm_eps);                   // [R, H]
  return limited(b, b.attention(q, k, v, i), kOut, i, c.hidden_dim);  // [R, H]
}

Value limited_mlp(Builder& b, Value h, uint32_t i) {
  if (!b.config.tower.has_limits) return layers::gated_mlp(b, h, i);  // [R, H]
  const Value gate = limited(b, h, kGate, i, b.config.ffn_dim);       // [R, F]
  const Value up = limited(b, h, kUp, i, b.config.ffn_dim);           // [R, F]
  const Value y = b.graph.multiply(gate, up, b.config.activation);    // [R, F]
  return limited(b, y, kDown, i, b.config.hidden_dim);                // [R, H]
}

}  // namespace

void build_gemma4_patches(Builder& b) {
  Graph& g = b.graph;
  Value x = placed_patches(b);  // [R, H]
  for (uint32_t i = 0; i < b.config.n_layers; ++i) {
    const Value seen = gemma4_tower_attention(b, b.norm(x, TensorId::kAttentionNorm, i), i);  // [R, H]
    x = g.add(x, b.norm(seen, TensorId::kPostAttentionNorm, i));                              // [R, H]
    const Value made = limited_mlp(b, b.norm(x, TensorId::kFfnNorm, i), i);                   // [R, H]
    x = g.add(x, b.norm(made, TensorId::kPostFfnNorm, i));                                    // [R, H]
  }
  g.set_logits(x);
}

void build_gemma4_tokens(Builder& b) {
  Graph& g = b.graph;
  const formats::ModelConfig& c = b.config;
  Value y = g.mean_parts(g.input(0, merged_dim(b)), c.hidden_dim);          // [N, H]
  y = g.scale(y, {.factor = std::sqrt(static_cast<float>(c.hidden_dim))});  // [N, H]
  if (c.tower.is_standardised) {
    y = g.standardise(y, g.vector(TensorId::kMergerMean, 0, c.hidden_dim),
                      g.vector(TensorId::kMergerScale, 0, c.hidden_dim));  // [N, H]
  }
  y = g.head_norm(y, c.hidden_dim, c.norm_eps);                            // [N, H]
  g.set_logits(b.linear(y, TensorId::kMergerDown, 0, c.tower.image_dim));  // [N, T]
}

}  // namespace doppler::families
