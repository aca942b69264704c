#include "formats/architectures/gemma_keys.h"

#include "base/json.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"

namespace doppler::formats {
namespace {

constexpr const char *kFinalCap = "final_logit_softcapping", *kSharedLayers = "attention.shared_kv_layers",
                     *kLayerInputKey = "embedding_length_per_layer_input";
constexpr uint32_t kMostLayerInput = 1 << 16;  // ten times the largest published models

Result<void> check(const ModelConfig& config) {
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    if (layer + config.shared_kv_layers < config.n_layers || cache_layer(config, layer) != layer) continue;
    return fail(
        ErrorKind::kInvalidInput,
        "The last %u of %u layers share keys and values, but none before them is of the kind of layer %u.",
        config.shared_kv_layers, config.n_layers, layer);
  }
  if (config.layer_input.dim > kMostLayerInput) {
    return fail(ErrorKind::kInvalidInput, "Embeddings of a layer have %u numbers; allowed is up to %u.",
                config.layer_input.dim, kMostLayerInput);
  }
  return {};
}

}  // namespace

float gemma_attention_scale(const ModelConfig&) { return 1; }

Result<void> read_huggingface_gemma(const Json& json, ModelConfig& config) {
  config.attention_scale = gemma_attention_scale(config);
  DP_TRY(const double cap, number_or(json, kFinalCap, 0));
  config.final_softcap = static_cast<float>(cap);
  DP_TRY(const auto shared, get_count(json, "num_kv_shared_layers"));
  config.shared_kv_layers = shared.value_or(0);
  DP_TRY(const auto dim, get_count(json, "hidden_size_per_layer_input"));
  config.layer_input.dim = dim.value_or(0);
  DP_TRY(const auto vocab, get_count(json, "vocab_size_per_layer_input"));
  if (config.layer_input.dim != 0) config.layer_input.vocab_size = vocab.value_or(config.vocab_size);
  return check(config);
}

Result<void> read_gguf_gemma(const GgufKeys& keys, ModelConfig& config) {
  DP_TRY(const double cap, keys.number(kFinalCap, 0));
  config.final_softcap = static_cast<float>(cap);
  DP_TRY(const auto shared, keys.count(kSharedLayers));
  config.shared_kv_layers = shared.value_or(0);
  DP_TRY(const auto dim, keys.count(kLayerInputKey));
  config.layer_input.dim = dim.value_or(0);
  return check(config);
}

std::vector<GgufField> gguf_gemma_fields(const ModelConfig& config) {
  std::vector<GgufField> out = {{kSharedLayers, config.shared_kv_layers},
                                {kLayerInputKey, config.layer_input.dim}};
  if (config.final_softcap != 0) out.push_back({kFinalCap, config.final_softcap});
  return out;
}

}  // namespace doppler::formats
