// SigLIP towers and what joins them to text models: Gemma 3, PaliGemma, Idefics 3 and SmolVLM, LFM2-VL. Facts: transformers'
// SiglipVisionModel, Siglip2VisionModel, and the models' projectors.
#include "formats/architectures/towers/tower_rows.h"
#include "formats/architectures/towers/tower_tensors.h"

namespace doppler::formats {
namespace {

using enum TensorId;
using towers::vector_row;

constexpr TensorId kLayer[] = {kAttentionNorm, kAttentionNormBias, kQ,  kK,   kV, kAttentionOut,
                               kFfnNorm,       kFfnNormBias,       kUp, kDown};

constexpr TensorRow kTower[] = {
    {kPatchEmbed, "v.patch_embd", "embeddings.patch_embedding", {Dim::kHidden, Dim::kPatchValues}},
    {.id = kPositions,
     .gguf = "v.position_embd",
     .huggingface = "embeddings.position_embedding",
     .shape = {Dim::kPositionCount, Dim::kHidden},
     .is_vector = true},
    vector_row(kAttentionNorm, "ln1.weight", "layer_norm1.weight"),
    vector_row(kAttentionNormBias, "ln1.bias", "layer_norm1.bias"),
    {kQ, "attn_q", "self_attn.q_proj", {Dim::kQRows, Dim::kHidden}},
    {kK, "attn_k", "self_attn.k_proj", {Dim::kKvRows, Dim::kHidden}},
    {kV, "attn_v", "self_attn.v_proj", {Dim::kKvRows, Dim::kHidden}},
    {kAttentionOut, "attn_out", "self_attn.out_proj", {Dim::kHidden, Dim::kQRows}},
    vector_row(kFfnNorm, "ln2.weight", "layer_norm2.weight"),
    vector_row(kFfnNormBias, "ln2.bias", "layer_norm2.bias"),
    {kUp, "ffn_up", "mlp.fc1", {Dim::kFfn, Dim::kHidden}},
    {kDown, "ffn_down", "mlp.fc2", {Dim::kHidden, Dim::kFfn}},
    vector_row(kFinalNorm, "v.post_ln.weight", "post_layernorm.weight"),
    vector_row(kFinalNormBias, "v.post_ln.bias", "post_layernorm.bias"),
};

// Gemma 3's norm is stored as w - 1.
constexpr TensorRow kGemma3Projector[] = {
    {kMergerNorm, "mm.soft_emb_norm", "/multi_modal_projector.mm_soft_emb_norm", {Dim::kHidden}, /*is_norm=*/true},
    {kMergerDown, "mm.input_projection", "/multi_modal_projector.mm_input_projection", {Dim::kImageDim, Dim::kHidden}},
};
constexpr TensorRow kPaligemmaProjector[] = {
    {kMergerDown, "mm.0", "/multi_modal_projector.linear", {Dim::kImageDim, Dim::kHidden}},
};
constexpr TensorRow kIdeficsProjector[] = {
    {kMergerDown, "mm.model.fc", "/connector.modality_projection.proj", {Dim::kImageDim, Dim::kMerged}},
};
constexpr TensorRow kLfm2Projector[] = {
    vector_row(kMergerNorm, "mm.input_norm.weight", "/multi_modal_projector.layer_norm.weight", Dim::kMerged),
    vector_row(kMergerNormBias, "mm.input_norm.bias", "/multi_modal_projector.layer_norm.bias", Dim::kMerged),
    {kMergerUp, "mm.1", "/multi_modal_projector.linear_1", {Dim::kProjector, Dim::kMerged}},
    {kMergerDown, "mm.2", "/multi_modal_projector.linear_2", {Dim::kImageDim, Dim::kProjector}},
};

constexpr auto kGemma3 = towers::joined(kTower, kGemma3Projector);
constexpr auto kPaligemma = towers::joined(kTower, kPaligemmaProjector);
constexpr auto kIdefics = towers::joined(kTower, kIdeficsProjector);
constexpr auto kLfm2 = towers::joined(kTower, kLfm2Projector);

constexpr GgufRow kGguf = {.architectures = {}, .pairing = RopePairing::kNeox, .layers = "v.blk."};

constexpr HuggingFaceRow below(std::string_view prefix, float norm_offset = 0) {
  return {.model_types = {},
          .pairing = RopePairing::kNeox,
          .norm_offset = norm_offset,
          .prefix = prefix,
          .layers = "encoder.layers."};
}

}  // namespace

constinit const Architecture towers::gemma3 = {.family = "gemma3_tower",
                                               .activation = ActivationFn::kGeluTanh,
                                               .layer = kLayer,
                                               .bidirectional = true,
                                               .rotates = false,
                                               .own_tensors = kGemma3,
                                               .gguf = kGguf,
                                               .huggingface = below("vision_tower.vision_model.", 1)};

constinit const Architecture towers::paligemma = {.family = "paligemma_tower",
                                                  .activation = ActivationFn::kGeluTanh,
                                                  .layer = kLayer,
                                                  .bidirectional = true,
                                                  .rotates = false,
                                                  .own_tensors = kPaligemma,
                                                  .gguf = kGguf,
                                                  .huggingface = below("vision_tower.vision_model.")};

constinit const Architecture towers::idefics3 = {.family = "idefics3_tower",
                                                 .activation = ActivationFn::kGeluTanh,
                                                 .layer = kLayer,
                                                 .bidirectional = true,
                                                 .rotates = false,
                                                 .own_tensors = kIdefics,
                                                 .gguf = kGguf,
                                                 .huggingface = below("vision_model.")};

constinit const Architecture towers::lfm2_vl = {.family = "lfm2_vl_tower",
                                                .activation = ActivationFn::kGeluTanh,
                                                .layer = kLayer,
                                                .bidirectional = true,
                                                .rotates = false,
                                                .own_tensors = kLfm2,
                                                .gguf = kGguf,
                                                .huggingface = below("vision_tower.vision_model.")};

}  // namespace doppler::formats
