// ERNIE 4.5 with experts (Baidu 2025): Llama whose neighbours rotate, with experts in a run of layers and shared ones
// beside them. Facts: transformers' Ernie4_5_MoeConfig; llama.cpp's LLM_ARCH_ERNIE4_5_MOE.
#include <algorithm>

#include "base/json.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace ernie4_5_moe {
namespace {

using enum TensorId;
using enum Dim;

constexpr float kNormMin = 1e-12f;  // moe_norm_min of all published models
constexpr std::string_view kGguf[] = {"ernie4_5-moe"};
constexpr HuggingFaceType kTypes[] = {{"ernie4_5_moe", WindowRule::kNone}};
constexpr FieldDefault kDefaults[] = {
    {"moe_num_experts", 64, true},       {"moe_k", 6, true},
    {"moe_num_shared_experts", 2, true}, {"moe_intermediate_size", 1536, true},
    {"num_key_value_heads", 4, true},    {"max_position_embeddings", 131072, true},
    {"rms_norm_eps", 1e-5, false},       {"rope_theta", 500000, false}};
constexpr TensorRow kTensors[] = {
    {kRouterBias, "exp_probs_b", "mlp.moe_statics.e_score_correction_bias", {kExperts}, true, ".bias", ""},
    {kSharedGate, "ffn_gate_shexp", "mlp.shared_experts.gate_proj", {kSharedFfn, kHidden}},
    {kSharedUp, "ffn_up_shexp", "mlp.shared_experts.up_proj", {kSharedFfn, kHidden}},
    {kSharedDown, "ffn_down_shexp", "mlp.shared_experts.down_proj", {kHidden, kSharedFfn}},
};

void set_what_no_key_says(MoeConfig& moe) {
  moe.has_score_bias = true;
  moe.norm_weights = true;
  moe.norm_epsilon = kNormMin;
}

// Every `interval`-th layer from `start` to `end`.
void set_layers(ModelConfig& config, uint32_t interval, uint32_t start, uint32_t end) {
  config.moe.is_moe.resize(config.n_layers);
  for (uint32_t i = 0; i < config.n_layers; ++i) {
    config.moe.is_moe[i] = (i + 1) % std::max(1u, interval) == 0 && i >= start && i <= end;
  }
}

Result<void> read(const Json& json, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  set_what_no_key_says(moe);
  DP_TRY(moe.n_used, required_count(json, "moe_k"));
  DP_CHECK(read_huggingface_moe(json, config));
  DP_TRY(const uint32_t shared, required_count(json, "moe_num_shared_experts"));
  moe.shared_dim = shared * moe.expert_dim;
  DP_TRY(const double norm_min, number_or(json, "moe_norm_min", static_cast<double>(kNormMin)));
  moe.norm_epsilon = static_cast<float>(norm_min);
  DP_TRY(const auto interval, get_count(json, "moe_layer_interval"));
  DP_TRY(const auto start, get_count(json, "moe_layer_start_index"));
  DP_TRY(const auto end, get_integer(json, "moe_layer_end_index"));
  const int64_t last = end.value_or(-1) < 0 ? UINT32_MAX : *end;
  set_layers(config, interval.value_or(1), start.value_or(1), static_cast<uint32_t>(last));
  return check_moe(config);
}

Result<void> read_gguf(const GgufKeys& keys, ModelConfig& config) {
  set_what_no_key_says(config.moe);
  DP_CHECK(read_gguf_moe(keys, config));
  DP_TRY(const auto step, keys.count("interleave_moe_layer_step"));
  DP_TRY(const auto dense, keys.count("leading_dense_block_count"));
  set_layers(config, step.value_or(1), dense.value_or(0), UINT32_MAX);
  return {};
}

std::vector<GgufField> write_gguf(const ModelConfig& config) {
  std::vector<GgufField> out = gguf_moe_fields(config);
  out.push_back({"interleave_moe_layer_step", 1u});
  return out;
}

constexpr Architecture kRow = {
    .family = "ernie4_5_moe",
    .layer = kPreNormMoeLayer,
    .own_tensors = kTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kGptJ,
             .read = read_gguf,
             .write = write_gguf,
             .keys = kGgufMoeKeys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kGptJ,
                    .tied_embeddings = true,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kHuggingFaceMoeKeys},
};

}  // namespace
}  // namespace ernie4_5_moe

constinit const Architecture rows::ernie4_5_moe = ernie4_5_moe::kRow;

}  // namespace doppler::formats
