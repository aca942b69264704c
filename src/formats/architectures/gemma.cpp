// Gemma 1: Llama with GELU gates, embeddings times sqrt(H), and norms that Hugging Face stores as w - 1. Facts:
// transformers' GemmaConfig, whose gates are the tanh form whatever hidden_act says; llama.cpp's LLM_ARCH_GEMMA.
#include "base/json.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace gemma {
namespace {

constexpr std::string_view kGguf[] = {"gemma"};
constexpr HuggingFaceType kTypes[] = {{"gemma", WindowRule::kNone}};
constexpr FieldDefault kDefaults[] = {{"head_dim", 256, true}, {"max_position_embeddings", 8192, true}};
constexpr std::string_view kFields[] = {"hidden_act"};

Result<void> read(const Json& json, ModelConfig& config) {
  DP_TRY(const auto name, get_string(json, "hidden_activation"));
  const std::string act = name.value_or("gelu_pytorch_tanh");
  if (act == "gelu_pytorch_tanh" || act == "gelu") return {};
  return fail(ErrorKind::kUnsupported, "Activation \"%s\" is not supported in models of type \"%s\".",
              printable(act).c_str(), config.architecture.c_str());
}

constexpr Architecture kRow = {
    .family = "gemma",
    .activation = ActivationFn::kGeluTanh,
    .layer = kPreNormLayer,
    .gguf = {.architectures = kGguf, .pairing = RopePairing::kNeox},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .norm_offset = 1.0f,
                    .tied_embeddings = true,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kFields},
};

}  // namespace
}  // namespace gemma

constinit const Architecture rows::gemma = gemma::kRow;

}  // namespace doppler::formats
