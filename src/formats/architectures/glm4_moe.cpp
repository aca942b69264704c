// GLM 4.5 to 4.7, with experts after the first layers and a shared one beside them; norms of q and k are optional.
// Facts: transformers' Glm4MoeConfig; llama.cpp's LLM_ARCH_GLM4_MOE, whose files call the second norm of a layer
// post_attention_norm and say by their tensors whether q and k are normalised.
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace glm4_moe {
namespace {

using enum TensorId;
using enum Dim;

constexpr float kNormEpsilon = 1e-20f;  // transformers' Glm4MoeTopkRouter
constexpr std::string_view kGguf[] = {"glm4moe"};
constexpr HuggingFaceType kTypes[] = {{"glm4_moe", WindowRule::kNone}};
constexpr FieldDefault kDefaults[] = {
    {"n_routed_experts", 128, true},       {"num_experts_per_tok", 8, true},
    {"moe_intermediate_size", 1408, true}, {"n_shared_experts", 1, true},
    {"first_k_dense_replace", 1, true},    {"num_key_value_heads", 8, true},
    {"partial_rotary_factor", 0.5, false}, {"max_position_embeddings", 131072, true},
    {"rms_norm_eps", 1e-5, false}};
constexpr std::string_view kKeys[] = {"n_routed_experts", "n_shared_experts", "first_k_dense_replace",
                                      "use_qk_norm"};
constexpr TensorId kLayer[] = {kAttentionNorm, kQ,          kK,        kV,          kQNorm,      kKNorm,
                               kAttentionOut,  kFfnNorm,    kRouter,   kRouterBias, kExpertGate, kExpertUp,
                               kExpertDown,    kSharedGate, kSharedUp, kSharedDown, kGate,       kUp,
                               kDown};
constexpr TensorRow kTensors[] = {
    {kFfnNorm, "post_attention_norm", "post_attention_layernorm", {kHidden}, /*is_norm=*/true},
    {kSharedGate, "ffn_gate_shexp", "mlp.shared_experts.gate_proj", {kSharedFfn, kHidden}},
    {kSharedUp, "ffn_up_shexp", "mlp.shared_experts.up_proj", {kSharedFfn, kHidden}},
    {kSharedDown, "ffn_down_shexp", "mlp.shared_experts.down_proj", {kHidden, kSharedFfn}},
};

void set_what_no_key_says(MoeConfig& moe) {
  moe.score = RouterScore::kSigmoid;
  moe.has_score_bias = true;
  moe.norm_epsilon = kNormEpsilon;
  moe.group_score = GroupScore::kSumOfTwo;
}

Result<void> read(const Json& json, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  set_what_no_key_says(moe);
  DP_TRY(config.has_qk_norm, bool_or(json, "use_qk_norm", false));
  DP_CHECK(read_huggingface_moe(json, config));
  DP_TRY(const uint32_t shared, required_count(json, "n_shared_experts"));
  moe.shared_dim = shared * moe.expert_dim;
  DP_TRY(moe.norm_weights, bool_or(json, "norm_topk_prob", true));
  DP_TRY(const double scale, number_or(json, "routed_scaling_factor", 1.0));
  moe.weight_scale = static_cast<float>(scale);
  DP_TRY(const auto groups, get_count(json, "n_group"));
  DP_TRY(const auto used, get_count(json, "topk_group"));
  moe.n_groups = groups.value_or(1);
  moe.groups_used = used.value_or(1);
  DP_TRY(const uint32_t dense, required_count(json, "first_k_dense_replace"));
  set_leading_dense(config, dense);
  return check_moe(config);
}

Result<void> read_gguf(const GgufKeys& keys, ModelConfig& config) {
  set_what_no_key_says(config.moe);
  DP_CHECK(leave_out_guessing_layers(keys, config));
  return read_gguf_moe(keys, config);
}

// llama.cpp reads how many shared experts there are, not their width.
std::vector<GgufField> write_gguf(const ModelConfig& config) {
  std::vector<GgufField> out = gguf_moe_fields(config);
  out.push_back({"expert_shared_count", config.moe.shared_dim / config.moe.expert_dim});
  return out;
}

constexpr Architecture kRow = {
    .family = "glm4_moe",
    .biases = Biases::kQkvKey,
    .layer = kLayer,
    .own_tensors = kTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .optional_qk_norm = true,
             .read = read_gguf,
             .write = write_gguf,
             .keys = kGgufMoeKeys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kKeys},
};

}  // namespace
}  // namespace glm4_moe

constinit const Architecture rows::glm4_moe = glm4_moe::kRow;

}  // namespace doppler::formats
