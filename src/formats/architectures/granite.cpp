// Granite 3, dense: Llama with four numbers, which multiply embeddings, attention's logits, what branches add, and (as
// a divisor) the logits. Facts: transformers' GraniteConfig; llama.cpp's LLM_ARCH_GRANITE, whose files have the rows of
// q and k ordered as Llama's.
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/granite_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace granite {
namespace {

constexpr std::string_view kGguf[] = {"granite"};
constexpr HuggingFaceType kTypes[] = {{"granite", WindowRule::kNone}};

constexpr Architecture kRow = {
    .family = "granite",
    .biases = Biases::kConfigKeys,
    .layer = kPreNormLayer,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kGptJ,
             .read = read_gguf_granite,
             .write = gguf_granite_fields,
             .keys = kGgufGraniteKeys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .tied_embeddings = true,
                    .read = read_huggingface_granite,
                    .keys = kHuggingFaceGraniteKeys},
};

}  // namespace
}  // namespace granite

Result<void> read_huggingface_granite(const Json& json, ModelConfig& config) {
  DP_TRY(const double embedding, number_or(json, "embedding_multiplier", 1));
  DP_TRY(const double attention, number_or(json, "attention_multiplier", 1));
  DP_TRY(const double residual, number_or(json, "residual_multiplier", 1));
  DP_TRY(const double logits, number_or(json, "logits_scaling", 1));
  config.embedding_scale = static_cast<float>(embedding);
  config.attention_scale = static_cast<float>(attention);
  config.residual_scale = static_cast<float>(residual);
  config.logits_scale = static_cast<float>(1 / logits);
  return {};
}

Result<void> read_gguf_granite(const GgufKeys& keys, ModelConfig& config) {
  DP_TRY(const double embedding, keys.number("embedding_scale", 1));
  DP_TRY(const double attention, keys.number("attention.scale", 0));
  DP_TRY(const double residual, keys.number("residual_scale", 1));
  DP_TRY(const double logits, keys.number("logit_scale", 1));
  config.embedding_scale = static_cast<float>(embedding);
  if (attention != 0) config.attention_scale = static_cast<float>(attention);
  config.residual_scale = static_cast<float>(residual);
  config.logits_scale = static_cast<float>(1 / logits);
  DP_TRY(const bool rotates, keys.truth("rope.scaling.finetuned", true));
  if (!rotates) config.is_unrotated.assign(config.n_layers, 1);
  return {};
}

std::vector<GgufField> gguf_granite_fields(const ModelConfig& config) {
  return {{kGgufGraniteKeys[0], config.embedding_scale},
          {kGgufGraniteKeys[1], config.attention_scale},
          {kGgufGraniteKeys[2], config.residual_scale},
          {kGgufGraniteKeys[3], 1 / config.logits_scale}};
}

constinit const Architecture rows::granite = granite::kRow;

}  // namespace doppler::formats
