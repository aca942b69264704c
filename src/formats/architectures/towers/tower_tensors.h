// The parts of the rows of towers.
#pragma once

#include <array>
#include <span>
#include <utility>

#include "formats/architectures/architecture.h"

namespace doppler::formats::towers {

// A vector whose names have no common suffix.
constexpr TensorRow vector_row(TensorId id, std::string_view gguf, std::string_view huggingface,
                               Dim dim = Dim::kHidden) {
  return {.id = id,
          .gguf = gguf,
          .huggingface = huggingface,
          .shape = {dim},
          .gguf_suffix = "",
          .huggingface_suffix = "",
          .is_vector = true};
}

// The rows of CLIP, which SigLIP's towers have too.
inline constexpr TensorRow kClipRows[] = {
    {TensorId::kPatchEmbed, "v.patch_embd", "embeddings.patch_embedding", {Dim::kHidden, Dim::kPatchValues}},
    {.id = TensorId::kPositions,
     .gguf = "v.position_embd",
     .huggingface = "embeddings.position_embedding",
     .shape = {Dim::kPositionCount, Dim::kHidden},
     .is_vector = true},
    vector_row(TensorId::kAttentionNorm, "ln1.weight", "layer_norm1.weight"),
    vector_row(TensorId::kAttentionNormBias, "ln1.bias", "layer_norm1.bias"),
    {TensorId::kQ, "attn_q", "self_attn.q_proj", {Dim::kQRows, Dim::kHidden}},
    {TensorId::kK, "attn_k", "self_attn.k_proj", {Dim::kKvRows, Dim::kHidden}},
    {TensorId::kV, "attn_v", "self_attn.v_proj", {Dim::kKvRows, Dim::kHidden}},
    {TensorId::kAttentionOut, "attn_out", "self_attn.out_proj", {Dim::kHidden, Dim::kQRows}},
    vector_row(TensorId::kFfnNorm, "ln2.weight", "layer_norm2.weight"),
    vector_row(TensorId::kFfnNormBias, "ln2.bias", "layer_norm2.bias"),
    {TensorId::kUp, "ffn_up", "mlp.fc1", {Dim::kFfn, Dim::kHidden}},
    {TensorId::kDown, "ffn_down", "mlp.fc2", {Dim::kHidden, Dim::kFfn}},
};
// Each layer of towers with LayerNorm and a feed-forward layer without gates.
inline constexpr TensorId kNormLayer[] = {TensorId::kAttentionNorm,
                                          TensorId::kAttentionNormBias,
                                          TensorId::kQ,
                                          TensorId::kK,
                                          TensorId::kV,
                                          TensorId::kAttentionOut,
                                          TensorId::kFfnNorm,
                                          TensorId::kFfnNormBias,
                                          TensorId::kUp,
                                          TensorId::kDown};

// The rows of a block of Qwen's and GLM's towers: queries, keys and values, and a feed-forward layer with gates.
inline constexpr TensorRow kVisualGated[] = {
    {TensorId::kPatchEmbed, "v.patch_embd", "patch_embed.proj", {Dim::kHidden, Dim::kPatchValues}},
    vector_row(TensorId::kAttentionNorm, "ln1.weight", "norm1.weight"),
    {TensorId::kQ, "attn_q", "attn.q", {Dim::kQRows, Dim::kHidden}},
    {TensorId::kK, "attn_k", "attn.k", {Dim::kKvRows, Dim::kHidden}},
    {TensorId::kV, "attn_v", "attn.v", {Dim::kKvRows, Dim::kHidden}},
    {TensorId::kAttentionOut, "attn_out", "attn.proj", {Dim::kHidden, Dim::kQRows}},
    vector_row(TensorId::kFfnNorm, "ln2.weight", "norm2.weight"),
    {TensorId::kGate, "ffn_gate", "mlp.gate_proj", {Dim::kFfn, Dim::kHidden}},
    {TensorId::kUp, "ffn_up", "mlp.up_proj", {Dim::kFfn, Dim::kHidden}},
    {TensorId::kDown, "ffn_down", "mlp.down_proj", {Dim::kHidden, Dim::kFfn}},
};
// Each layer of towers with RMSNorm and gates.
inline constexpr TensorId kGatedLayer[] = {
    TensorId::kAttentionNorm, TensorId::kQ,    TensorId::kK,  TensorId::kV,   TensorId::kAttentionOut,
    TensorId::kFfnNorm,       TensorId::kGate, TensorId::kUp, TensorId::kDown};

// Towers are no architectures of their own, so no key and no model type names them.
inline constexpr GgufRow kGguf = {.architectures = {}, .pairing = RopePairing::kNeox, .layers = "v.blk."};
constexpr HuggingFaceRow names_below(std::string_view prefix, std::string_view layers,
                                     float norm_offset = 0) {
  return {.model_types = {},
          .pairing = RopePairing::kNeox,
          .norm_offset = norm_offset,
          .prefix = prefix,
          .layers = layers};
}

// The rows of a tower, then those of what joins it to a text model.
template <size_t... N>
constexpr auto joined(const TensorRow (&... parts)[N]) {
  std::array<const TensorRow*, (N + ...)> rows{};
  size_t count = 0;
  const auto add = [&](std::span<const TensorRow> part) {
    for (const TensorRow& row : part) rows[count++] = &row;
  };
  (add(parts), ...);
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::array<TensorRow, (N + ...)>{*rows[I]...};
  }(std::make_index_sequence<(N + ...)>());
}

}  // namespace doppler::formats::towers
