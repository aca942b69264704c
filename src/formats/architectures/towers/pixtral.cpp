// Pixtral's tower, below Mistral 3 and, as in its own checkpoints, LLaVA's projector. Facts: transformers'
// PixtralVisionModel, Mistral3MultiModalProjector and LlavaMultiModalProjector.
#include "formats/architectures/towers/tower_rows.h"
#include "formats/architectures/towers/tower_tensors.h"

namespace doppler::formats {
namespace {

using enum TensorId;
using towers::vector_row;

constexpr TensorRow kTower[] = {
    {kPatchEmbed, "v.patch_embd", "patch_conv", {Dim::kHidden, Dim::kPatchValues}},
    vector_row(kPreNorm, "v.pre_ln.weight", "ln_pre.weight"),
    vector_row(kAttentionNorm, "ln1.weight", "attention_norm.weight"),
    {kQ, "attn_q", "attention.q_proj", {Dim::kQRows, Dim::kHidden}},
    {kK, "attn_k", "attention.k_proj", {Dim::kKvRows, Dim::kHidden}},
    {kV, "attn_v", "attention.v_proj", {Dim::kKvRows, Dim::kHidden}},
    {kAttentionOut, "attn_out", "attention.o_proj", {Dim::kHidden, Dim::kQRows}},
    vector_row(kFfnNorm, "ln2.weight", "ffn_norm.weight"),
    {kGate, "ffn_gate", "feed_forward.gate_proj", {Dim::kFfn, Dim::kHidden}},
    {kUp, "ffn_up", "feed_forward.up_proj", {Dim::kFfn, Dim::kHidden}},
    {kDown, "ffn_down", "feed_forward.down_proj", {Dim::kHidden, Dim::kFfn}},
};

constexpr TensorRow kPixtralProjector[] = {
    vector_row(kMergerNorm, "mm.input_norm.weight", "/multi_modal_projector.norm.weight"),
    {kMergerIn,
     "mm.patch_merger",
     "/multi_modal_projector.patch_merger.merging_layer",
     {Dim::kHidden, Dim::kMerged}},
    {kMergerUp, "mm.1", "/multi_modal_projector.linear_1", {Dim::kImageDim, Dim::kHidden}},
    {kMergerDown, "mm.2", "/multi_modal_projector.linear_2", {Dim::kImageDim, Dim::kImageDim}},
};

constexpr auto kAll = towers::joined(kTower, kPixtralProjector);

constexpr HuggingFaceRow kHuggingFace = towers::names_below("vision_tower.", "transformer.layers.");

}  // namespace

constinit const Architecture towers::pixtral = {.family = "pixtral_tower",
                                                .activation = ActivationFn::kSilu,
                                                .layer = towers::kGatedLayer,
                                                .bidirectional = true,
                                                .own_tensors = kAll,
                                                .gguf = towers::kGguf,
                                                .huggingface = kHuggingFace};
constinit const Architecture towers::mistral3 = {.family = "mistral3_tower",
                                                 .activation = ActivationFn::kSilu,
                                                 .layer = towers::kGatedLayer,
                                                 .bidirectional = true,
                                                 .own_tensors = kAll,
                                                 .gguf = towers::kGguf,
                                                 .huggingface = kHuggingFace};

}  // namespace doppler::formats
