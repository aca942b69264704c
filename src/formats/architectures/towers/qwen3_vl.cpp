// The tower of Qwen 3-VL and Qwen 3.5. Facts: transformers' Qwen3VLVisionModel; llama.cpp's PROJECTOR_TYPE_QWEN3VL.
#include "formats/architectures/towers/tower_rows.h"
#include "formats/architectures/towers/tower_tensors.h"

namespace doppler::formats {
namespace {

using enum TensorId;

using towers::vector_row;

constexpr TensorRow kQwen3VlOwnTensors[] = {
    {kPatchEmbed, "v.patch_embd", "patch_embed.proj", {Dim::kHidden, Dim::kPatchValues}},
    {.id = kPositions,
     .gguf = "v.position_embd",
     .huggingface = "pos_embed",
     .shape = {Dim::kPositionCount, Dim::kHidden},
     .is_vector = true},
    vector_row(kAttentionNorm, "ln1.weight", "norm1.weight"),
    vector_row(kAttentionNormBias, "ln1.bias", "norm1.bias"),
    {kQ, "attn_q", "attn.q", {Dim::kQRows, Dim::kHidden}},
    {kK, "attn_k", "attn.k", {Dim::kKvRows, Dim::kHidden}},
    {kV, "attn_v", "attn.v", {Dim::kKvRows, Dim::kHidden}},
    {kAttentionOut, "attn_out", "attn.proj", {Dim::kHidden, Dim::kQRows}},
    vector_row(kFfnNorm, "ln2.weight", "norm2.weight"),
    vector_row(kFfnNormBias, "ln2.bias", "norm2.bias"),
    {kUp, "ffn_up", "mlp.linear_fc1", {Dim::kFfn, Dim::kHidden}},
    {kDown, "ffn_down", "mlp.linear_fc2", {Dim::kHidden, Dim::kFfn}},
    vector_row(kMergerNorm, "v.post_ln.weight", "merger.norm.weight"),
    vector_row(kMergerNormBias, "v.post_ln.bias", "merger.norm.bias"),
    {kMergerUp, "mm.0", "merger.linear_fc1", {Dim::kMerged, Dim::kMerged}},
    {kMergerDown, "mm.2", "merger.linear_fc2", {Dim::kImageDim, Dim::kMerged}},
    vector_row(kDeepNorm, "v.deepstack.#.norm.weight", "deepstack_merger_list.#.norm.weight", Dim::kMerged),
    vector_row(kDeepNormBias, "v.deepstack.#.norm.bias", "deepstack_merger_list.#.norm.bias", Dim::kMerged),
    {kDeepUp, "v.deepstack.#.fc1", "deepstack_merger_list.#.linear_fc1", {Dim::kMerged, Dim::kMerged}},
    {kDeepDown, "v.deepstack.#.fc2", "deepstack_merger_list.#.linear_fc2", {Dim::kImageDim, Dim::kMerged}},
};

}  // namespace

constinit const Architecture towers::qwen3_vl = {
    .family = "qwen3_vl_tower",
    .activation = ActivationFn::kGeluTanh,
    .layer = towers::kNormLayer,
    .bidirectional = true,
    .own_tensors = kQwen3VlOwnTensors,
    .gguf = towers::kGguf,
    .huggingface = towers::names_below("visual.", "blocks."),
};

}  // namespace doppler::formats
