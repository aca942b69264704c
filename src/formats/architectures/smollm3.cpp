// SmolLM3: Llama whose every fourth layer does not rotate. Facts: transformers' SmolLM3Config; llama.cpp's
// LLM_ARCH_SMOLLM3, which has no key for the four.
#include "base/json.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace smollm3 {
namespace {

constexpr uint32_t kInterval = 4;

constexpr std::string_view kGguf[] = {"smollm3"};
constexpr HuggingFaceType kTypes[] = {{"smollm3", WindowRule::kNone}};
constexpr FieldDefault kDefaults[] = {{"rope_theta", 2e6, false}, {"max_position_embeddings", 32768, true}};
constexpr std::string_view kFields[] = {"no_rope_layers"};

void leave_out_every(ModelConfig& config, uint32_t interval) {
  config.is_unrotated.resize(config.n_layers);
  for (uint32_t i = 0; i < config.n_layers; ++i) config.is_unrotated[i] = (i + 1) % interval == 0;
}

Result<void> read(const Json& json, ModelConfig& config) {
  DP_TRY(const auto interval, get_count(json, "no_rope_layer_interval"));
  DP_TRY(const std::vector<double> rotates, get_numbers(json, "no_rope_layers"));  // 1: it rotates
  if (rotates.empty()) {
    if (interval == 0u) return fail(ErrorKind::kInvalidInput, "Field \"no_rope_layer_interval\" is 0.");
    leave_out_every(config, interval.value_or(kInterval));
    return {};
  }
  if (rotates.size() != config.n_layers) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"no_rope_layers\" must be a list of one number a layer (%u).", config.n_layers);
  }
  for (const double number : rotates) config.is_unrotated.push_back(number == 0);
  return {};
}

Result<void> read_keys(const GgufKeys&, ModelConfig& config) {
  leave_out_every(config, kInterval);
  return {};
}

constexpr Architecture kRow = {
    .family = "smollm3",
    .biases = Biases::kConfigKeys,
    .layer = kPreNormLayer,
    .gguf = {.architectures = kGguf, .pairing = RopePairing::kGptJ, .read = read_keys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .tied_embeddings = true,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kFields},
};

}  // namespace
}  // namespace smollm3

constinit const Architecture rows::smollm3 = smollm3::kRow;

}  // namespace doppler::formats
