// The tower of Qwen 2.5-VL. Facts: transformers' Qwen2_5_VisionTransformerPretrainedModel; llama.cpp's
// PROJECTOR_TYPE_QWEN25VL.
#include "formats/architectures/towers/tower_rows.h"
#include "formats/architectures/towers/tower_tensors.h"

namespace doppler::formats {
namespace {

using enum TensorId;
using towers::vector_row;

constexpr TensorRow kQwen25VlOwn[] = {
    vector_row(kMergerNorm, "v.post_ln.weight", "merger.ln_q.weight"),
    {kMergerUp, "mm.0", "merger.mlp.0", {Dim::kMerged, Dim::kMerged}},
    {kMergerDown, "mm.2", "merger.mlp.2", {Dim::kImageDim, Dim::kMerged}},
};

constexpr auto kQwen25VlOwnTensors = towers::joined(towers::kVisualGated, kQwen25VlOwn);

}  // namespace

constinit const Architecture towers::qwen2_5_vl = {
    .family = "qwen2_5_vl_tower",
    .activation = ActivationFn::kSilu,
    .layer = towers::kGatedLayer,
    .bidirectional = true,
    .own_tensors = kQwen25VlOwnTensors,
    .gguf = towers::kGguf,
    .huggingface = towers::names_below("visual.", "blocks."),
};

}  // namespace doppler::formats
