// Hunyuan V1, dense and with experts: each head of q and k is normalised after its rotation. Facts: transformers'
// HunYuanDenseV1Config and HunYuanMoEV1Config; llama.cpp's LLM_ARCH_HUNYUAN_DENSE and LLM_ARCH_HUNYUAN_MOE.
#include "base/json.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace hunyuan_v1 {
namespace {

using enum TensorId;
using enum Dim;

constexpr std::string_view kGguf[] = {"hunyuan-dense"}, kGgufMoe[] = {"hunyuan-moe"};
constexpr HuggingFaceType kTypes[] = {{"hunyuan_v1_dense", WindowRule::kNone}};
constexpr HuggingFaceType kMoeTypes[] = {{"hunyuan_v1_moe", WindowRule::kNone}};
constexpr std::string_view kFields[] = {"use_qk_norm", "num_experts"};
constexpr FieldDefault kMoeDefaults[] = {{"num_experts", 1, true}};
constexpr TensorId kLayer[] = {kAttentionNorm, kQ,       kK,    kV,  kQNorm, kKNorm,
                               kAttentionOut,  kFfnNorm, kGate, kUp, kDown};
constexpr TensorId kMoeLayer[] = {kAttentionNorm, kQ,        kK,         kV,          kQNorm,    kKNorm,
                                  kAttentionOut,  kFfnNorm,  kRouter,    kExpertGate, kExpertUp, kExpertDown,
                                  kSharedGate,    kSharedUp, kSharedDown};
constexpr TensorRow kQNormRow = {
    kQNorm, "attn_q_norm", "self_attn.query_layernorm", {kHeadDim}, /*is_norm=*/true};
constexpr TensorRow kKNormRow = {
    kKNorm, "attn_k_norm", "self_attn.key_layernorm", {kHeadDim}, /*is_norm=*/true};
constexpr TensorRow kOwnTensors[] = {kQNormRow, kKNormRow};
constexpr TensorRow kMoeTensors[] = {
    kQNormRow,
    kKNormRow,
    {kRouter, "ffn_gate_inp", "mlp.gate.wg", {kExperts, kHidden}},
    {kSharedGate, "ffn_gate_shexp", "mlp.shared_mlp.gate_proj", {kSharedFfn, kHidden}},
    {kSharedUp, "ffn_up_shexp", "mlp.shared_mlp.up_proj", {kSharedFfn, kHidden}},
    {kSharedDown, "ffn_down_shexp", "mlp.shared_mlp.down_proj", {kHidden, kSharedFfn}},
};

// Published folders of dense models have one expert.
Result<void> read(const Json& json, ModelConfig& config) {
  DP_TRY(const auto experts, get_count(json, "num_experts"));
  if (experts.value_or(1) <= 1) return require_truth(json, "use_qk_norm", true);
  return fail(ErrorKind::kUnsupported, "Field \"num_experts\" is %u; models of type \"%s\" have 0 or 1.",
              *experts, config.architecture.c_str());
}

// A number, or a list that has the same one for each layer.
Result<uint32_t> count_of_all_layers(const Json& json, const char* key, uint32_t usual) {
  const Json* list = find(json, key);
  if (!list || !list->is_array()) {
    DP_TRY(const auto count, get_count(json, key));
    return count.value_or(usual);
  }
  DP_TRY(const std::vector<double> counts, get_numbers(json, key));
  if (counts.empty()) return usual;
  for (const double count : counts) {
    if (count == counts[0] && count >= 0 && count <= UINT32_MAX) continue;
    return fail(ErrorKind::kUnsupported,
                "Field \"%s\" has %g beside %g; allowed is one count for all layers.", key, count, counts[0]);
  }
  return static_cast<uint32_t>(counts[0]);
}

Result<void> read_moe(const Json& json, ModelConfig& config) {
  DP_CHECK(require_truth(json, "use_qk_norm", true));
  DP_CHECK(require_truth(json, "use_mixed_mlp_moe", true));
  MoeConfig& moe = config.moe;
  moe.norm_weights = true;
  DP_TRY(moe.n_experts, required_count(json, "num_experts"));
  DP_TRY(moe.n_used, count_of_all_layers(json, "moe_topk", 1));
  DP_TRY(moe.expert_dim, count_of_all_layers(json, "moe_intermediate_size", config.ffn_dim));
  DP_TRY(const uint32_t shared, count_of_all_layers(json, "num_shared_expert", 1));
  moe.shared_dim = shared * config.ffn_dim;
  DP_TRY(const auto dense, get_count(json, "moe_layer_num_skipped"));
  if (dense.value_or(0) != 0) {
    return fail(ErrorKind::kUnsupported, "Field \"moe_layer_num_skipped\" is %u; supported is 0.", *dense);
  }
  return check_moe(config);
}

Result<void> read_gguf_keys(const GgufKeys& keys, ModelConfig& config) {
  config.moe.norm_weights = true;
  return read_gguf_moe(keys, config);
}

constexpr Architecture kHunyuanV1Row = {
    .family = "hunyuan_v1",
    .biases = Biases::kConfigKeys,
    .layer = kLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf, .pairing = RopePairing::kNeox},
    .huggingface = {.model_types = kTypes, .pairing = RopePairing::kNeox, .read = read, .keys = kFields},
};

constexpr Architecture kHunyuanV1MoeRow = {
    .family = "hunyuan_v1_moe",
    .biases = Biases::kConfigKeys,
    .layer = kMoeLayer,
    .own_tensors = kMoeTensors,
    .gguf = {.architectures = kGgufMoe,
             .pairing = RopePairing::kNeox,
             .read = read_gguf_keys,
             .write = gguf_moe_fields,
             .keys = kGgufMoeKeys},
    .huggingface = {.model_types = kMoeTypes,
                    .pairing = RopePairing::kNeox,
                    .defaults = kMoeDefaults,
                    .read = read_moe,
                    .keys = kFields},
};

}  // namespace
}  // namespace hunyuan_v1

constinit const Architecture rows::hunyuan_v1 = hunyuan_v1::kHunyuanV1Row;
constinit const Architecture rows::hunyuan_v1_moe = hunyuan_v1::kHunyuanV1MoeRow;

}  // namespace doppler::formats
