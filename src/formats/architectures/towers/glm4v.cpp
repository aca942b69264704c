// The tower of GLM 4.1V and 4.6V. Facts: transformers' Glm4vVisionModel; llama.cpp's PROJECTOR_TYPE_GLM4V.
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

constexpr TensorRow kOwn[] = {
    vector_row(kPreNorm, "v.norm_embd.weight", "post_conv_layernorm.weight"),
    {.id = kPositions,
     .gguf = "v.position_embd",
     .huggingface = "embeddings.position_embedding",
     .shape = {Dim::kPositionCount, Dim::kHidden},
     .is_vector = true},
    vector_row(kFinalNorm, "v.post_ln.weight", "post_layernorm.weight"),
    {kMergerIn, "mm.patch_merger", "downsample", {Dim::kImageDim, Dim::kMerged}},
    {kMergerMiddle, "mm.model.fc", "merger.proj", {Dim::kImageDim, Dim::kImageDim}},
    vector_row(kMergerNorm, "mm.post_norm.weight", "merger.post_projection_norm.weight", Dim::kImageDim),
    vector_row(kMergerNormBias, "mm.post_norm.bias", "merger.post_projection_norm.bias", Dim::kImageDim),
    {kMergerGate, "mm.gate", "merger.gate_proj", {Dim::kProjector, Dim::kImageDim}},
    {kMergerUp, "mm.up", "merger.up_proj", {Dim::kProjector, Dim::kImageDim}},
    {kMergerDown, "mm.down", "merger.down_proj", {Dim::kImageDim, Dim::kProjector}},
};

constexpr auto kGlm4vOwnTensors = towers::joined(towers::kVisualGated, kOwn);

}  // namespace

// The feed-forward layers of blocks are as wide as the text model, and the projector's has the number of that name.
Result<void> towers::read_glm4v(const Json&, const Json& vision, ModelConfig& c) {
  DP_CHECK(read_qwen(vision, c));
  c.tower.projector_dim = c.ffn_dim;
  c.tower.projector_eps = 1e-5f;
  c.ffn_dim = c.tower.image_dim;
  DP_TRY(const double eps, number_or(vision, "rms_norm_eps", 1e-5));
  c.norm_eps = static_cast<float>(eps);
  DP_CHECK(require_text(vision, "hidden_act", "silu"));
  DP_CHECK(require_truth(vision, "attention_bias", false));
  DP_TRY(const uint32_t size, required_count(vision, "image_size"));
  DP_TRY(const uint32_t patch, required_count(vision, "patch_size"));
  c.tower.table_side = size / patch;
  c.ctx_len = c.tower.table_side * c.tower.table_side;
  if (c.ctx_len != 0) return {};
  return fail(ErrorKind::kInvalidInput, "Pictures of %u pixels an edge have no patch of %u.", size, patch);
}

constinit const Architecture towers::glm4v = {
    .family = "glm4v_tower",
    .activation = ActivationFn::kSilu,
    .layer = towers::kGatedLayer,
    .bidirectional = true,
    .own_tensors = kGlm4vOwnTensors,
    .gguf = towers::kGguf,
    .huggingface = towers::names_below("visual.", "blocks."),
};

}  // namespace doppler::formats
