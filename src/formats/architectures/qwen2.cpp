// Qwen 2 and 2.5, dense: Llama with biases of q, k and v, which no key asks for. Facts: transformers' Qwen2Config;
// llama.cpp's LLM_ARCH_QWEN2.
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace qwen2 {
namespace {

constexpr std::string_view kGguf[] = {"qwen2", "qwen2vl"};
constexpr HuggingFaceType kTypes[] = {{"qwen2", WindowRule::kUpperLayers},
                                      {"qwen2_5_vl", WindowRule::kUpperLayers},
                                      {"qwen2_5_vl_text", WindowRule::kUpperLayers}};
constexpr FieldDefault kDefaults[] = {{"max_position_embeddings", 32768, true},
                                      {"sliding_window", 4096, true},
                                      {"max_window_layers", 28, true}};

constexpr Architecture kRow = {
    .family = "qwen2",
    .biases = Biases::kQkv,
    .layer = kPreNormLayer,
    .gguf = {.architectures = kGguf, .pairing = RopePairing::kNeox, .of_axes = "qwen2vl"},
    .huggingface = {.model_types = kTypes, .pairing = RopePairing::kNeox, .defaults = kDefaults},
};

}  // namespace
}  // namespace qwen2

constinit const Architecture rows::qwen2 = qwen2::kRow;

}  // namespace doppler::formats
