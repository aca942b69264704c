// SigLIP towers and what joins them to text models: Gemma 3, PaliGemma, Idefics 3 and SmolVLM, LFM2-VL. Facts:
// transformers' SiglipVisionModel, Siglip2VisionModel, and the models' projectors.
#include "formats/architectures/towers/tower_rows.h"
#include "formats/architectures/towers/tower_tensors.h"

namespace doppler::formats {
namespace {

using enum TensorId;
using towers::vector_row;

constexpr TensorRow kFinal[] = {
    vector_row(kFinalNorm, "v.post_ln.weight", "post_layernorm.weight"),
    vector_row(kFinalNormBias, "v.post_ln.bias", "post_layernorm.bias"),
};

// Gemma 3's norm is stored as w - 1.
constexpr TensorRow kGemma3Projector[] = {
    {kMergerNorm,
     "mm.soft_emb_norm",
     "/multi_modal_projector.mm_soft_emb_norm",
     {Dim::kHidden},
     /*is_norm=*/true},
    {kMergerDown,
     "mm.input_projection",
     "/multi_modal_projector.mm_input_projection",
     {Dim::kImageDim, Dim::kHidden}},
};
constexpr TensorRow kIdeficsProjector[] = {
    {kMergerDown, "mm.model.fc", "/connector.modality_projection.proj", {Dim::kImageDim, Dim::kMerged}},
};
constexpr TensorRow kPaligemmaProjector[] = {
    {kMergerDown, "mm.0", "/multi_modal_projector.linear", {Dim::kImageDim, Dim::kHidden}},
};
constexpr TensorRow kLfm2Projector[] = {
    vector_row(kMergerNorm, "mm.input_norm.weight", "/multi_modal_projector.layer_norm.weight", Dim::kMerged),
    vector_row(kMergerNormBias, "mm.input_norm.bias", "/multi_modal_projector.layer_norm.bias", Dim::kMerged),
    {kMergerUp, "mm.1", "/multi_modal_projector.linear_1", {Dim::kProjector, Dim::kMerged}},
    {kMergerDown, "mm.2", "/multi_modal_projector.linear_2", {Dim::kImageDim, Dim::kProjector}},
};

constexpr auto kGemma3 = towers::joined(towers::kClipRows, kFinal, kGemma3Projector);
constexpr auto kIdefics = towers::joined(towers::kClipRows, kFinal, kIdeficsProjector);
constexpr auto kPaligemma = towers::joined(towers::kClipRows, kFinal, kPaligemmaProjector);
constexpr auto kLfm2 = towers::joined(towers::kClipRows, kFinal, kLfm2Projector);

}  // namespace

constinit const Architecture towers::gemma3 = {
    .family = "gemma3_tower",
    .activation = ActivationFn::kGeluTanh,
    .layer = towers::kNormLayer,
    .bidirectional = true,
    .rotates = false,
    .own_tensors = kGemma3,
    .gguf = towers::kGguf,
    .huggingface = towers::names_below("vision_tower.vision_model.", "encoder.layers.", 1)};

constinit const Architecture towers::idefics3 = {
    .family = "idefics3_tower",
    .activation = ActivationFn::kGeluTanh,
    .layer = towers::kNormLayer,
    .bidirectional = true,
    .rotates = false,
    .own_tensors = kIdefics,
    .gguf = towers::kGguf,
    .huggingface = towers::names_below("vision_model.", "encoder.layers.")};

constinit const Architecture towers::paligemma = {
    .family = "paligemma_tower",
    .activation = ActivationFn::kGeluTanh,
    .layer = towers::kNormLayer,
    .bidirectional = true,
    .rotates = false,
    .own_tensors = kPaligemma,
    .gguf = towers::kGguf,
    .huggingface = towers::names_below("vision_tower.vision_model.", "encoder.layers.")};

constinit const Architecture towers::lfm2_vl = {
    .family = "lfm2_vl_tower",
    .activation = ActivationFn::kGeluTanh,
    .layer = towers::kNormLayer,
    .bidirectional = true,
    .rotates = false,
    .own_tensors = kLfm2,
    .gguf = towers::kGguf,
    .huggingface = towers::names_below("vision_tower.vision_model.", "encoder.layers.")};

}  // namespace doppler::formats
