// Towers with a class token: CLIP below LLaVA, and InternViT below InternVL. Facts: transformers' CLIPVisionModel,
// LlavaMultiModalProjector, InternVLVisionModel and InternVLMultiModalProjector.
#include "formats/architectures/towers/tower_rows.h"
#include "formats/architectures/towers/tower_tensors.h"

namespace doppler::formats {
namespace {

using enum TensorId;
using towers::vector_row;

constexpr TensorId kInternvlLayer[] = {kAttentionNorm,  kAttentionNormBias, kQ,           kK,  kV,
                                       kAttentionOut,   kFfnNorm,           kFfnNormBias, kUp, kDown,
                                       kAttentionScale, kFfnScale};

constexpr TensorRow kLlava[] = {
    vector_row(kPreNorm, "v.pre_ln.weight", "pre_layrnorm.weight"),  // the checkpoints' spelling
    vector_row(kPreNormBias, "v.pre_ln.bias", "pre_layrnorm.bias"),
    {kMergerUp, "mm.0", "/multi_modal_projector.linear_1", {Dim::kImageDim, Dim::kHidden}},
    {kMergerDown, "mm.2", "/multi_modal_projector.linear_2", {Dim::kImageDim, Dim::kImageDim}},
};
constexpr auto kClip = towers::joined(towers::kClipRows, kLlava);

constexpr TensorRow kInternvl[] = {
    {kPatchEmbed,
     "v.patch_embd",
     "embeddings.patch_embeddings.projection",
     {Dim::kHidden, Dim::kPatchValues}},
    {.id = kPositions,
     .gguf = "v.position_embd",
     .huggingface = "embeddings.position_embeddings",
     .shape = {Dim::kPositionCount, Dim::kHidden},
     .huggingface_suffix = "",
     .is_vector = true},
    vector_row(kAttentionNorm, "ln1.weight", "layernorm_before.weight"),
    vector_row(kAttentionNormBias, "ln1.bias", "layernorm_before.bias"),
    {kQ, "attn_q", "attention.q_proj", {Dim::kQRows, Dim::kHidden}},
    {kK, "attn_k", "attention.k_proj", {Dim::kKvRows, Dim::kHidden}},
    {kV, "attn_v", "attention.v_proj", {Dim::kKvRows, Dim::kHidden}},
    {kAttentionOut, "attn_out", "attention.projection_layer", {Dim::kHidden, Dim::kQRows}},
    vector_row(kAttentionScale, "ls1.weight", "lambda_1"),
    vector_row(kFfnNorm, "ln2.weight", "layernorm_after.weight"),
    vector_row(kFfnNormBias, "ln2.bias", "layernorm_after.bias"),
    {kUp, "ffn_up", "mlp.fc1", {Dim::kFfn, Dim::kHidden}},
    {kDown, "ffn_down", "mlp.fc2", {Dim::kHidden, Dim::kFfn}},
    vector_row(kFfnScale, "ls2.weight", "lambda_2"),
    vector_row(kMergerNorm, "mm.model.mlp.0.weight", "/multi_modal_projector.layer_norm.weight",
               Dim::kMerged),
    vector_row(kMergerNormBias, "mm.model.mlp.0.bias", "/multi_modal_projector.layer_norm.bias",
               Dim::kMerged),
    {kMergerUp, "mm.model.mlp.1", "/multi_modal_projector.linear_1", {Dim::kImageDim, Dim::kMerged}},
    {kMergerDown, "mm.model.mlp.3", "/multi_modal_projector.linear_2", {Dim::kImageDim, Dim::kImageDim}},
};

}  // namespace

constinit const Architecture towers::clip = {
    .family = "clip_tower",
    .activation = ActivationFn::kSilu,
    .layer = towers::kNormLayer,
    .bidirectional = true,
    .rotates = false,
    .own_tensors = kClip,
    .gguf = towers::kGguf,
    .huggingface = towers::names_below("vision_tower.vision_model.", "encoder.layers.")};

constinit const Architecture towers::internvl = {
    .family = "internvl_tower",
    .activation = ActivationFn::kGeluErf,
    .layer = kInternvlLayer,
    .bidirectional = true,
    .rotates = false,
    .own_tensors = kInternvl,
    .gguf = towers::kGguf,
    .huggingface = towers::names_below("vision_tower.", "encoder.layer.")};

}  // namespace doppler::formats
