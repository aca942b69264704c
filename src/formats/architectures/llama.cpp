// Llama 1 to 3 and Mistral. Facts: transformers' LlamaConfig and MistralConfig; llama.cpp's LLM_ARCH_LLAMA, which has
// no architecture of its own for Mistral and does not read its window, nor for Mixtral: its experts are read here.
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace llama {
namespace {

constexpr std::string_view kGguf[] = {"llama"};
constexpr HuggingFaceType kTypes[] = {{"llama", WindowRule::kNone}, {"mistral", WindowRule::kAllLayers}};

Result<void> read_experts(const GgufKeys& keys, ModelConfig& config) {
  config.moe.norm_weights = true;
  return read_gguf_moe(keys, config);
}

constexpr Architecture kRow = {
    .family = "llama",
    .biases = Biases::kConfigKeys,
    .layer = kPreNormMoeLayer,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kGptJ,
             .window = WindowRule::kAllLayers,
             .read = read_experts,
             .write = gguf_moe_fields,
             .keys = kGgufMoeKeys},
    .huggingface = {.model_types = kTypes, .pairing = RopePairing::kNeox},
};

}  // namespace
}  // namespace llama

constinit const Architecture rows::llama = llama::kRow;

}  // namespace doppler::formats
