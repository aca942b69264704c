// The tower of Gemma 4. Facts: transformers' Gemma4VisionModel and Gemma4MultimodalEmbedder; llama.cpp's
// PROJECTOR_TYPE_GEMMA4V.
#include "base/json.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/rows.h"
#include "formats/architectures/towers/tower_numbers.h"
#include "formats/architectures/towers/tower_rows.h"
#include "formats/architectures/towers/tower_tensors.h"

namespace doppler::formats {
namespace {

using enum TensorId;
using towers::vector_row;

constexpr TensorId kLayer[] = {kAttentionNorm,
                               kQ,
                               kQLimits,
                               kK,
                               kKLimits,
                               kV,
                               kVLimits,
                               kQNorm,
                               kKNorm,
                               kAttentionOut,
                               kAttentionOutLimits,
                               kPostAttentionNorm,
                               kFfnNorm,
                               kGate,
                               kGateLimits,
                               kUp,
                               kUpLimits,
                               kDown,
                               kDownLimits,
                               kPostFfnNorm};

// image_tensors.h makes the vectors of limits.
constexpr TensorRow kOwnTensors[] = {
    {kPatchEmbed, "v.patch_embd", "patch_embedder.input_proj", {Dim::kHidden, Dim::kPatchValues}},
    {.id = kPositions,
     .gguf = "v.position_embd",
     .huggingface = "patch_embedder.position_embedding_table",
     .shape = {Dim::kPositionCount, Dim::kHidden},
     .huggingface_suffix = "",
     .is_vector = true},
    vector_row(kAttentionNorm, "ln1.weight", "input_layernorm.weight"),
    {kQ, "attn_q", "self_attn.q_proj.linear", {Dim::kQRows, Dim::kHidden}},
    vector_row(kQLimits, "attn_q.limits", "self_attn.q_proj.limits", Dim::kLimits),
    {kK, "attn_k", "self_attn.k_proj.linear", {Dim::kKvRows, Dim::kHidden}},
    vector_row(kKLimits, "attn_k.limits", "self_attn.k_proj.limits", Dim::kLimits),
    {kV, "attn_v", "self_attn.v_proj.linear", {Dim::kKvRows, Dim::kHidden}},
    vector_row(kVLimits, "attn_v.limits", "self_attn.v_proj.limits", Dim::kLimits),
    vector_row(kQNorm, "attn_q_norm.weight", "self_attn.q_norm.weight", Dim::kHeadDim),
    vector_row(kKNorm, "attn_k_norm.weight", "self_attn.k_norm.weight", Dim::kHeadDim),
    {kAttentionOut, "attn_out", "self_attn.o_proj.linear", {Dim::kHidden, Dim::kQRows}},
    vector_row(kAttentionOutLimits, "attn_out.limits", "self_attn.o_proj.limits", Dim::kLimits),
    vector_row(kPostAttentionNorm, "attn_post_norm.weight", "post_attention_layernorm.weight"),
    vector_row(kFfnNorm, "ln2.weight", "pre_feedforward_layernorm.weight"),
    {kGate, "ffn_gate", "mlp.gate_proj.linear", {Dim::kFfn, Dim::kHidden}},
    vector_row(kGateLimits, "ffn_gate.limits", "mlp.gate_proj.limits", Dim::kLimits),
    {kUp, "ffn_up", "mlp.up_proj.linear", {Dim::kFfn, Dim::kHidden}},
    vector_row(kUpLimits, "ffn_up.limits", "mlp.up_proj.limits", Dim::kLimits),
    {kDown, "ffn_down", "mlp.down_proj.linear", {Dim::kHidden, Dim::kFfn}},
    vector_row(kDownLimits, "ffn_down.limits", "mlp.down_proj.limits", Dim::kLimits),
    vector_row(kPostFfnNorm, "ffn_post_norm.weight", "post_feedforward_layernorm.weight"),
    vector_row(kMergerMean, "v.std_bias", "std_bias"),
    vector_row(kMergerScale, "v.std_scale", "std_scale"),
    {kMergerDown,
     "mm.input_projection",
     "/embed_vision.embedding_projection",
     {Dim::kImageDim, Dim::kHidden}},
};

constexpr uint32_t kMostPositions = 1 << 16;  // along an axis

Result<void> read_positions(const Json& vision, ModelConfig& c) {
  DP_TRY(const uint32_t of_axis, required_count(vision, "position_embedding_size"));
  c.ctx_len = 2 * of_axis;
  if (of_axis >= 1 && of_axis <= kMostPositions) return {};
  return fail(ErrorKind::kUnsupported, "Field \"position_embedding_size\" is %u; allowed are 1 to %u.",
              of_axis, kMostPositions);
}

// Heads of their own width or number are of no published tower.
Result<void> check_heads(const Json& vision, const ModelConfig& c) {
  DP_TRY(const uint32_t kv_heads, towers::count_or(vision, "num_key_value_heads", c.n_heads));
  DP_TRY(const uint32_t head_dim, required_count(vision, "head_dim"));
  if (kv_heads == c.n_heads && uint64_t{head_dim} * c.n_heads == c.hidden_dim) return {};
  return fail(
      ErrorKind::kUnsupported,
      "A vision tower of %u values has %u heads of %u and %u of keys; allowed are as many heads of keys, "
      "which share all values.",
      c.hidden_dim, c.n_heads, head_dim, kv_heads);
}

}  // namespace

Result<void> towers::read_gemma4(const Json& whole, const Json& vision, ModelConfig& c) {
  DP_TRY(c.n_layers, required_count(vision, "num_hidden_layers"));
  DP_TRY(c.hidden_dim, required_count(vision, "hidden_size"));
  DP_TRY(c.n_heads, required_count(vision, "num_attention_heads"));
  DP_TRY(c.ffn_dim, required_count(vision, "intermediate_size"));
  DP_TRY(c.tower.block, required_count(vision, "pooling_kernel_size"));
  DP_CHECK(check_heads(vision, c));
  DP_CHECK(read_positions(vision, c));
  DP_TRY(const double eps, number_or(vision, "rms_norm_eps", 1e-6));
  c.norm_eps = static_cast<float>(eps);
  c.attention_scale = 1;
  static const Json kNone;
  const Json* rope = find(vision, "rope_parameters");
  DP_TRY(c.rope.theta, number_or(rope ? *rope : kNone, "rope_theta", 100));
  DP_CHECK(require_text(vision, "hidden_activation", "gelu_pytorch_tanh"));
  DP_CHECK(require_truth(vision, "attention_bias", false));
  DP_TRY(c.tower.has_limits, bool_or(vision, "use_clipped_linears", false));
  DP_TRY(c.tower.is_standardised, bool_or(vision, "standardize", false));
  const Json* text = find(whole, "text_config");
  DP_TRY(const auto both_ways, get_string(text ? *text : kNone, "use_bidirectional_attention"));
  if (both_ways == "vision") c.tower.sight = PictureSight::kTileInWindow;
  DP_CHECK(read_text_dim(whole, c));
  DP_TRY(const uint32_t patch, required_count(vision, "patch_size"));
  return set_patch(c, patch, 1);
}

constinit const Architecture towers::gemma4 = {
    .family = "gemma4_tower",
    .activation = ActivationFn::kGeluTanh,
    .layer = kLayer,
    .bidirectional = true,
    .own_tensors = kOwnTensors,
    .gguf = towers::kGguf,
    .huggingface = towers::names_below("vision_tower.", "encoder.layers."),
};

}  // namespace doppler::formats
