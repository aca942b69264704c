// EXAONE 4: norms after the branches and of each head of q and k; if some layers slide, the others do not rotate.
// Facts: transformers' Exaone4Config; llama.cpp's LLM_ARCH_EXAONE4.
#include "base/json.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace exaone4 {
namespace {

constexpr uint32_t kPattern = 4;  // every fourth layer sees everything

constexpr std::string_view kGguf[] = {"exaone4"};
constexpr HuggingFaceType kTypes[] = {{"exaone4", WindowRule::kPattern}};
constexpr FieldDefault kDefaults[] = {{"sliding_window", 4096, true}};

void set_unrotated(ModelConfig& config) {
  for (uint32_t i = 0; i < config.n_layers; ++i) config.is_unrotated.push_back(!is_sliding_layer(config, i));
}

// The window counts, whether or not a layer has it.
Result<void> read(const Json& json, ModelConfig& config) {
  DP_TRY(const auto window, get_count(json, "sliding_window"));
  if (window.value_or(0) != 0) set_unrotated(config);
  return {};
}

Result<void> read_keys(const GgufKeys&, ModelConfig& config) {
  if (config.sliding_window != 0) set_unrotated(config);
  return {};
}

constexpr Architecture kRow = {
    .family = "exaone4",
    .window_pattern = kPattern,
    .layer = kPostNormLayer,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .window = WindowRule::kPattern,
             .read = read_keys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .defaults = kDefaults,
                    .read = read},
};

}  // namespace
}  // namespace exaone4

constinit const Architecture rows::exaone4 = exaone4::kRow;

}  // namespace doppler::formats
