// The tower of Qwen 2.5-VL. Facts: transformers' Qwen2_5_VisionTransformerPretrainedModel; llama.cpp's
// PROJECTOR_TYPE_QWEN25VL.
#include "formats/architectures/towers/tower_rows.h"
#include "formats/architectures/towers/tower_tensors.h"

namespace doppler::formats {
namespace {

using enum TensorId;
using towers::vector_row;

constexpr TensorId kLayer[] = {kAttentionNorm, kQ, kK, kV, kAttentionOut, kFfnNorm, kGate, kUp, kDown};

constexpr TensorRow kOwnTensors[] = {
    {kPatchEmbed, "v.patch_embd", "patch_embed.proj", {Dim::kHidden, Dim::kPatchValues}},
    vector_row(kAttentionNorm, "ln1.weight", "norm1.weight"),
    {kQ, "attn_q", "attn.q", {Dim::kQRows, Dim::kHidden}},
    {kK, "attn_k", "attn.k", {Dim::kKvRows, Dim::kHidden}},
    {kV, "attn_v", "attn.v", {Dim::kKvRows, Dim::kHidden}},
    {kAttentionOut, "attn_out", "attn.proj", {Dim::kHidden, Dim::kQRows}},
    vector_row(kFfnNorm, "ln2.weight", "norm2.weight"),
    {kGate, "ffn_gate", "mlp.gate_proj", {Dim::kFfn, Dim::kHidden}},
    {kUp, "ffn_up", "mlp.up_proj", {Dim::kFfn, Dim::kHidden}},
    {kDown, "ffn_down", "mlp.down_proj", {Dim::kHidden, Dim::kFfn}},
    vector_row(kMergerNorm, "v.post_ln.weight", "merger.ln_q.weight"),
    {kMergerUp, "mm.0", "merger.mlp.0", {Dim::kMerged, Dim::kMerged}},
    {kMergerDown, "mm.2", "merger.mlp.2", {Dim::kImageDim, Dim::kMerged}},
};

}  // namespace

constinit const Architecture towers::qwen2_5_vl = {
    .family = "qwen2_5_vl_tower",
    .activation = ActivationFn::kSilu,
    .layer = kLayer,
    .bidirectional = true,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = {}, .pairing = RopePairing::kNeox, .layers = "v.blk."},
    .huggingface = {.model_types = {},
                    .pairing = RopePairing::kNeox,
                    .prefix = "visual.",
                    .layers = "blocks."},
};

}  // namespace doppler::formats
