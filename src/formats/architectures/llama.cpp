// Llama 1 to 3 and Mistral. Facts: transformers' LlamaConfig and MistralConfig; llama.cpp's LLM_ARCH_LLAMA, which has
// no architecture of its own for Mistral and does not read its window.
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace {

constexpr std::string_view kGguf[] = {"llama"};
constexpr HuggingFaceType kTypes[] = {{"llama", WindowRule::kNone}, {"mistral", WindowRule::kAllLayers}};

}  // namespace

constinit const Architecture kLlamaRow = {
    .family = "llama",
    .biases = Biases::kConfigKeys,
    .layer = kPreNormLayer,
    .gguf = {.architectures = kGguf, .pairing = RopePairing::kGptJ, .window = WindowRule::kAllLayers},
    .huggingface = {.model_types = kTypes, .pairing = RopePairing::kNeox},
};

}  // namespace doppler::formats
