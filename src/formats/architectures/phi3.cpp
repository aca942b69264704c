// Phi 3 to Phi 4: Llama whose checkpoints have q, k and v as one matrix, and gates and ups as one. Facts: transformers'
// Phi3Config; llama.cpp's LLM_ARCH_PHI3.
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace phi3 {
namespace {

constexpr std::string_view kGguf[] = {"phi3"};
constexpr HuggingFaceType kTypes[] = {{"phi3", WindowRule::kAllLayers}};
constexpr FieldDefault kDefaults[] = {{"max_position_embeddings", 4096, true},
                                      {"original_max_position_embeddings", 4096, true}};

constexpr Architecture kRow = {
    .family = "phi3",
    .layer = kPreNormLayer,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .window = WindowRule::kAllLayers,
             .qkv = "attn_qkv",
             .gate_up = "ffn_up"},
    .huggingface = {.model_types = kTypes, .pairing = RopePairing::kNeox, .defaults = kDefaults},
};

}  // namespace
}  // namespace phi3

constinit const Architecture rows::phi3 = phi3::kRow;

}  // namespace doppler::formats
