// Gemma 2: norms stand around the branches (Hugging Face stores them as w - 1), every other layer slides, and logits of
// attention and of the head are capped. Facts: transformers' Gemma2Config; llama.cpp's LLM_ARCH_GEMMA2.
#include <cmath>

#include "formats/architectures/config_sources.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace gemma2 {
namespace {

using enum TensorId;

constexpr uint32_t kPattern = 2;         // every second layer sees everything
constexpr uint32_t kLayers27B = 46;      // the one size whose scale follows from hidden_dim / n_heads
constexpr uint32_t kUsualWindow = 4096;  // of GGUF files without the key
constexpr double kUsualAttentionCap = 50, kUsualFinalCap = 30;

constexpr std::string_view kGguf[] = {"gemma2"};
constexpr HuggingFaceType kTypes[] = {{"gemma2", WindowRule::kPattern}};
constexpr FieldDefault kDefaults[] = {{"head_dim", 256, true},
                                      {"max_position_embeddings", 8192, true},
                                      {"query_pre_attn_scalar", 256, false},
                                      {"sliding_window", kUsualWindow, true},
                                      {"attn_logit_softcapping", kUsualAttentionCap, false},
                                      {"final_logit_softcapping", kUsualFinalCap, false}};
constexpr std::string_view kFields[] = {"final_logit_softcapping"};
constexpr std::string_view kKeys[] = {"attn_logit_softcapping", "final_logit_softcapping"};
constexpr TensorRow kOwnTensors[] = {{.id = kFfnNorm,
                                      .gguf = "ffn_norm",
                                      .huggingface = "pre_feedforward_layernorm",
                                      .shape = {Dim::kHidden},
                                      .is_norm = true}};

float attention_scale(const ModelConfig& c) {
  if (c.n_layers != kLayers27B) return usual_attention_scale(c);
  return static_cast<float>(1 / std::sqrt(static_cast<double>(c.hidden_dim) / c.n_heads));
}

Result<void> read(const Json& json, ModelConfig& config) {
  DP_TRY(const double cap, number_or(json, "final_logit_softcapping", 0));
  config.final_softcap = static_cast<float>(cap);
  return {};
}

Result<void> read_keys(const GgufKeys& keys, ModelConfig& config) {
  DP_TRY(const double attention, keys.number(kKeys[0].data(), kUsualAttentionCap));
  DP_TRY(const double final_cap, keys.number(kKeys[1].data(), kUsualFinalCap));
  config.attention_softcap = static_cast<float>(attention);
  config.final_softcap = static_cast<float>(final_cap);
  DP_TRY(const auto window, keys.count("attention.sliding_window"));
  if (window) return {};
  config.sliding_window = kUsualWindow;
  return set_sliding_pattern(config, kPattern);
}

std::vector<GgufField> write_keys(const ModelConfig& config) {
  return {{kKeys[0], config.attention_softcap}, {kKeys[1], config.final_softcap}};
}

constexpr Architecture kRow = {
    .family = "gemma2",
    .activation = ActivationFn::kGeluTanh,
    .window_pattern = kPattern,
    .layer = kNormsAroundLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .window = WindowRule::kPattern,
             .attention_scale = attention_scale,
             .read = read_keys,
             .write = write_keys,
             .keys = kKeys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .norm_offset = 1.0f,
                    .activation = "hidden_activation",
                    .tied_embeddings = true,
                    .query_scalar = true,
                    .attention_softcap = true,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kFields},
};

}  // namespace
}  // namespace gemma2

constinit const Architecture rows::gemma2 = gemma2::kRow;

}  // namespace doppler::formats
