// The text model of Gemma 3n: four streams of the residual (AltUp), a low-rank branch beside attention (LAuReL), gates
// that keep only the largest values in the first layers, embeddings of each layer, and layers that read earlier keys
// and values. Facts: transformers' Gemma3nTextConfig; llama.cpp's src/models/gemma3n.cpp and conversion/gemma.py.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/altup.h"
#include "base/json.h"
#include "formats/architectures/gemma_keys.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace gemma3n {
namespace {

using enum TensorId;

constexpr uint32_t kPattern = 5;  // every fifth layer sees everything
constexpr double kSlidingTheta = 10000.0;

constexpr std::string_view kGguf[] = {"gemma3n"};
constexpr HuggingFaceType kTypes[] = {{"gemma3n_text", WindowRule::kPattern},
                                      {"gemma3n", WindowRule::kPattern}};
constexpr FieldDefault kDefaults[] = {
    {"vocab_size", 262400, true},
    {"hidden_size", 2048, true},
    {"intermediate_size", 16384, true},
    {"num_hidden_layers", 35, true},
    {"num_attention_heads", 8, true},
    {"num_key_value_heads", 2, true},
    {"head_dim", 256, true},
    {"max_position_embeddings", 32768, true},
    {"rms_norm_eps", 1e-6, false},
    {"rope_theta", 1e6, false},
    {"sliding_window", 512, true},
    {"final_logit_softcapping", 30, false},
    {"hidden_size_per_layer_input", 256, true},
    {"vocab_size_per_layer_input", 262144, true},
    {"num_kv_shared_layers", 15, true},
    {"laurel_rank", 64, true},
    {"altup_num_inputs", 4, true},
};
constexpr std::string_view kKeys[] = {"final_logit_softcapping", "num_kv_shared_layers", "altup_num_inputs",
                                      "hidden_size_per_layer_input", "activation_sparsity_pattern"};
constexpr const char *kActive = "altup.active_idx", *kStreams = "altup.num_inputs",
                     *kDeviations = "activation_sparsity_scale";
constexpr std::string_view kGgufKeys[] = {"final_logit_softcapping", "attention.shared_kv_layers",
                                          "embedding_length_per_layer_input"};
constexpr TensorId kModel[] = {kLayerTable, kLayerTableProj, kLayerTableNorm, kAltupIn1, kAltupIn2,
                               kAltupIn3,   kAltupOut1,      kAltupOut2,      kAltupOut3};
constexpr TensorId kLayer[] = {kAltupRouterNorm,
                               kAltupRouter,
                               kAltupPredict,
                               kAttentionNorm,
                               kLaurelLeft,
                               kLaurelRight,
                               kLaurelNorm,
                               kQ,
                               kK,
                               kV,
                               kQNorm,
                               kKNorm,
                               kAttentionOut,
                               kPostAttentionNorm,
                               kFfnNorm,
                               kGate,
                               kUp,
                               kDown,
                               kPostFfnNorm,
                               kAltupCorrect,
                               kAltupScale,
                               kLayerInputGate,
                               kLayerInputProj,
                               kLayerInputNorm};
constexpr TensorRow stacked(TensorId id, std::string_view gguf, std::string_view huggingface, uint32_t part) {
  return {.id = id,
          .gguf = gguf,
          .huggingface = huggingface,
          .shape = {Dim::kHidden, Dim::kHidden},
          .gguf_part = part,
          .gguf_parts = kAltupStreams - 1};
}
constexpr TensorRow kOwnTensors[] = {
    {kFfnNorm, "ffn_norm", "pre_feedforward_layernorm", {Dim::kHidden}, /*is_norm=*/true},
    stacked(kAltupIn1, "altup_proj", "altup_projections.0", 0),
    stacked(kAltupIn2, "altup_proj", "altup_projections.1", 1),
    stacked(kAltupIn3, "altup_proj", "altup_projections.2", 2),
    stacked(kAltupOut1, "altup_unembd_proj", "altup_unembed_projections.0", 0),
    stacked(kAltupOut2, "altup_unembd_proj", "altup_unembed_projections.1", 1),
    stacked(kAltupOut3, "altup_unembd_proj", "altup_unembed_projections.2", 2),
};

// The x below which a standard normal number is with probability p.
double normal_quantile(double p) {
  double low = -10, high = 10;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < p ? low : high) = middle;
  }
  return high;
}

Result<void> check_streams(double streams, double active) {
  if (streams == kAltupStreams && active == 0) return {};
  return fail(ErrorKind::kUnsupported,
              "AltUp has %g streams, and layers see number %g; supported are %u and 0.", streams, active,
              kAltupStreams);
}

Result<void> read(const Json& json, ModelConfig& config) {
  DP_CHECK(read_huggingface_gemma(json, config));
  DP_TRY(const double streams, number_or(json, "altup_num_inputs", kAltupStreams));
  DP_TRY(const double active, number_or(json, "altup_active_idx", 0));
  DP_CHECK(check_streams(streams, active));
  DP_CHECK(require_truth(json, "altup_correct_scale", true));
  DP_TRY(config.laurel_rank, required_count(json, "laurel_rank"));
  DP_TRY(const std::vector<double> shares, get_numbers(json, "activation_sparsity_pattern"));
  for (const double share : shares) {
    if (!(share >= 0 && share < 1)) {
      return fail(ErrorKind::kInvalidInput,
                  "Field \"activation_sparsity_pattern\" has %g; allowed is 0 to below 1.", share);
    }
    config.gate_deviations.push_back(share == 0 ? kAllGates : static_cast<float>(normal_quantile(share)));
  }
  return {};
}

Result<void> read_gguf(const GgufKeys& keys, ModelConfig& config) {
  DP_CHECK(read_gguf_gemma(keys, config));
  DP_TRY(const double streams, keys.number(kStreams, kAltupStreams));
  DP_TRY(const double active, keys.number(kActive, 0));
  DP_CHECK(check_streams(streams, active));
  DP_TRY(const std::vector<double> deviations, keys.numbers(kDeviations));
  for (const double number : deviations) {
    config.gate_deviations.push_back(std::isfinite(number) ? static_cast<float>(number) : kAllGates);
  }
  return {};
}

std::vector<GgufField> write_gguf(const ModelConfig& config) {
  std::vector<GgufField> out = gguf_gemma_fields(config);
  out.push_back({kStreams, kAltupStreams});
  out.push_back({kActive, 0u});
  std::vector<float> deviations;
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    const float number = gate_deviations_of(config, layer);
    deviations.push_back(number == kAllGates ? -std::numeric_limits<float>::infinity() : number);
  }
  out.push_back({kDeviations, std::move(deviations)});
  return out;
}

constexpr Architecture kRow = {
    .family = "gemma3n",
    .activation = ActivationFn::kGeluTanh,
    .window_pattern = kPattern,
    .sliding_rope_theta = kSlidingTheta,
    .layer = kLayer,
    .model = kModel,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .window = WindowRule::kPattern,
             .attention_scale = gemma_attention_scale,
             .has_lists = true,
             .read = read_gguf,
             .write = write_gguf,
             .keys = kGgufKeys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .activation = "hidden_activation",
                    .tied_embeddings = true,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kKeys},
};

}  // namespace
}  // namespace gemma3n

constinit const Architecture rows::gemma3n = gemma3n::kRow;

}  // namespace doppler::formats
