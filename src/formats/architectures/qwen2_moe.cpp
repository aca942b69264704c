// Qwen 2 and Qwen 3 with experts (Qwen Team 2024, 2025): the dense models' blocks, some or all with a mixture of
// experts; Qwen 2's has a shared expert with a gate besides. Facts: transformers' Qwen2MoeConfig and Qwen3MoeConfig;
// llama.cpp's LLM_ARCH_QWEN2MOE and LLM_ARCH_QWEN3MOE, which say in no key that Qwen 3's weights are normalised, and
// know no dense layer. Layers that slide, for which transformers has a rule a family and which no published model has,
// are refused.
#include <algorithm>

#include "base/json.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace qwen2_moe {
namespace {

using enum TensorId;

constexpr std::string_view kGguf2[] = {"qwen2moe"}, kGguf3[] = {"qwen3moe"};
constexpr HuggingFaceType kTypes2[] = {{"qwen2_moe", WindowRule::kNone}};
constexpr HuggingFaceType kTypes3[] = {{"qwen3_moe", WindowRule::kNone}};
constexpr FieldDefault kDefaults2[] = {{"max_position_embeddings", 32768, true},
                                       {"num_experts", 60, true},
                                       {"num_experts_per_tok", 4, true},
                                       {"moe_intermediate_size", 1408, true},
                                       {"shared_expert_intermediate_size", 5632, true}};
constexpr FieldDefault kDefaults3[] = {{"max_position_embeddings", 32768, true},
                                       {"num_experts", 128, true},
                                       {"num_experts_per_tok", 8, true},
                                       {"moe_intermediate_size", 768, true}};
constexpr std::string_view kFields3[] = {"num_experts", "num_local_experts", "use_qk_norm"};
constexpr TensorId kLayer3[] = {kAttentionNorm, kQ,       kK,      kV,          kQNorm,    kKNorm,
                                kAttentionOut,  kFfnNorm, kRouter, kExpertGate, kExpertUp, kExpertDown,
                                kGate,          kUp,      kDown};

// Every decoder_sparse_step-th layer has experts, but for those in mlp_only_layers.
Result<void> read_layers(const Json& json, ModelConfig& config) {
  DP_TRY(const auto step, get_count(json, "decoder_sparse_step"));
  DP_TRY(const std::vector<double> dense, get_numbers(json, "mlp_only_layers"));
  if (step.value_or(1) == 0) {
    return fail(ErrorKind::kInvalidInput, "Field \"decoder_sparse_step\" is 0; it must be above.");
  }
  if (step.value_or(1) == 1 && dense.empty()) return {};
  config.moe.is_moe.resize(config.n_layers);
  for (uint32_t i = 0; i < config.n_layers; ++i) {
    config.moe.is_moe[i] = (i + 1) % step.value_or(1) == 0 && std::ranges::find(dense, i) == dense.end();
  }
  return {};
}

Result<void> read2(const Json& json, ModelConfig& config) {
  DP_CHECK(read_huggingface_moe(json, config));
  DP_TRY(config.moe.norm_weights, bool_or(json, "norm_topk_prob", false));
  DP_TRY(config.moe.shared_dim, required_count(json, "shared_expert_intermediate_size"));
  config.moe.shared_gate = config.moe.shared_dim != 0;
  return read_layers(json, config);
}

Result<void> read3(const Json& json, ModelConfig& config) {
  DP_CHECK(require_truth(json, "use_qk_norm", true));
  DP_CHECK(read_huggingface_moe(json, config));
  DP_TRY(config.moe.norm_weights, bool_or(json, "norm_topk_prob", false));
  return read_layers(json, config);
}

Result<void> read_gguf2(const GgufKeys& keys, ModelConfig& config) {
  DP_CHECK(read_gguf_moe(keys, config));
  config.moe.shared_gate = config.moe.shared_dim != 0;
  return {};
}

Result<void> read_gguf3(const GgufKeys& keys, ModelConfig& config) {
  config.moe.norm_weights = true;
  return read_gguf_moe(keys, config);
}

constexpr Architecture kQwen2MoeRow = {
    .family = "qwen2_moe",
    .biases = Biases::kQkv,
    .layer = kPreNormMoeLayer,
    .gguf = {.architectures = kGguf2,
             .pairing = RopePairing::kNeox,
             .read = read_gguf2,
             .write = gguf_moe_fields,
             .keys = kGgufMoeKeys},
    .huggingface = {.model_types = kTypes2,
                    .pairing = RopePairing::kNeox,
                    .defaults = kDefaults2,
                    .read = read2,
                    .keys = kHuggingFaceMoeKeys},
};

constexpr Architecture kQwen3MoeRow = {
    .family = "qwen3_moe",
    .layer = kLayer3,
    .gguf = {.architectures = kGguf3,
             .pairing = RopePairing::kNeox,
             .read = read_gguf3,
             .write = gguf_moe_fields,
             .keys = kGgufMoeKeys},
    .huggingface = {.model_types = kTypes3,
                    .pairing = RopePairing::kNeox,
                    .defaults = kDefaults3,
                    .read = read3,
                    .keys = kFields3},
};

}  // namespace
}  // namespace qwen2_moe

constinit const Architecture rows::qwen2_moe = qwen2_moe::kQwen2MoeRow;
constinit const Architecture rows::qwen3_moe = qwen2_moe::kQwen3MoeRow;

}  // namespace doppler::formats
