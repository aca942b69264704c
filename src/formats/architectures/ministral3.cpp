// Ministral 3: Llama whose queries are scaled by their position, with the sentence length that yarn began from. Facts:
// transformers' Ministral3Config; llama.cpp's LLM_ARCH_MISTRAL3.
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace ministral3 {
namespace {

constexpr std::string_view kGguf[] = {"mistral3"};
constexpr HuggingFaceType kTypes[] = {{"ministral3", WindowRule::kAllLayers}};
constexpr FieldDefault kDefaults[] = {{"head_dim", 128, true}};
constexpr std::string_view kKeys[] = {"attention.temperature_scale"};

Result<void> read_keys(const GgufKeys& keys, ModelConfig& config) {
  DP_TRY(config.query_scaling.beta, keys.number(kKeys[0].data(), 0));
  if (config.query_scaling.beta != 0) config.query_scaling.ctx_len = config.rope.original_ctx_len;
  return {};
}

std::vector<GgufField> write_keys(const ModelConfig& config) {
  if (config.query_scaling.beta == 0) return {};
  return {{kKeys[0], static_cast<float>(config.query_scaling.beta)}};
}

constexpr Architecture kRow = {
    .family = "ministral3",
    .layer = kPreNormLayer,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kGptJ,
             .window = WindowRule::kAllLayers,
             .yarn_log_multiplier = 1,
             .read = read_keys,
             .write = write_keys,
             .keys = kKeys},
    .huggingface = {.model_types = kTypes, .pairing = RopePairing::kNeox, .defaults = kDefaults},
};

}  // namespace
}  // namespace ministral3

constinit const Architecture rows::ministral3 = ministral3::kRow;

}  // namespace doppler::formats
