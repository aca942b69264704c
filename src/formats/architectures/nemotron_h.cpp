// Nemotron-H and Nemotron 3, whose layers have one branch each: a letter of a pattern says which. Facts: transformers'
// NemotronHConfig; llama.cpp's LLM_ARCH_NEMOTRON_H and LLM_ARCH_NEMOTRON_H_MOE, whose lists of kv heads and of
// feed-forward lengths say the same, and which knows no model with both feed-forward layers and experts.
#include <algorithm>

#include "base/json.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/mamba_keys.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace nemotron_h {
namespace {

using enum TensorId;
using enum Dim;

constexpr float kNormEpsilon = 1e-20f;  // transformers' NemotronHTopkRouter
constexpr char kMamba = 'M', kAttention = '*', kFeedForward = '-', kMixture = 'E';
constexpr std::string_view kGguf[] = {"nemotron_h", "nemotron_h_moe"};
constexpr HuggingFaceType kTypes[] = {{"nemotron_h", WindowRule::kNone}};
constexpr FieldDefault kDefaults[] = {{"head_dim", 128, true},
                                      {"num_key_value_heads", 8, true},
                                      {"max_position_embeddings", 4096, true},
                                      {"layer_norm_epsilon", 1e-5, false},
                                      {"n_groups", 8, true},
                                      {"conv_kernel", 4, true},
                                      {"ssm_state_size", 128, true},
                                      {"mamba_num_heads", 128, true},
                                      {"mamba_head_dim", 64, true},
                                      {"n_shared_experts", 1, true}};
constexpr std::string_view kKeys[] = {"ssm_state_size", "hybrid_override_pattern", "n_routed_experts",
                                      "n_shared_experts", "moe_latent_size"};
constexpr std::string_view kGgufKeys[] = {"ssm.conv_kernel", "ssm.state_size", "expert_count",
                                          "moe_latent_size"};
constexpr TensorId kLayer[] = {kAttentionNorm, kQ,          kK,          kV,        kAttentionOut,
                               kRouter,        kRouterBias, kExpertsIn,  kExpertUp, kExpertDown,
                               kExpertsOut,    kSharedUp,   kSharedDown, kUp,       kDown};
constexpr TensorId kMambaLayer[] = {kAttentionNorm, kMambaIn,   kConv,      kConvBias, kStateDecay,
                                    kStateTimeBias, kStateSkip, kStateNorm, kStateOut};
constexpr TensorRow kOwnTensors[] = {
    {kEmbedding, "token_embd", "embeddings", {kVocab, kHidden}},
    {kFinalNorm, "output_norm", "norm_f", {kHidden}, /*is_norm=*/true},
    {kAttentionNorm, "attn_norm", "norm", {kHidden}, /*is_norm=*/true},
    {kMambaIn, "ssm_in", "mixer.in_proj", {kMambaInRows, kHidden}},
    {.id = kConv,
     .gguf = "ssm_conv1d",
     .huggingface = "mixer.conv1d",
     .shape = {kConvChannels, kOne, kConvKernel},
     .is_vector = true},
    {.id = kConvBias,
     .gguf = "ssm_conv1d.bias",
     .huggingface = "mixer.conv1d.bias",
     .shape = {kConvChannels},
     .gguf_suffix = "",
     .huggingface_suffix = "",
     .is_vector = true},
    {.id = kStateDecay,
     .gguf = "ssm_a",
     .huggingface = "mixer.A_log",
     .shape = {kValueHeads, kOne},
     .gguf_suffix = "",
     .huggingface_suffix = "",
     .is_vector = true,
     .is_log = true},
    {.id = kStateTimeBias,
     .gguf = "ssm_dt.bias",
     .huggingface = "mixer.dt_bias",
     .shape = {kValueHeads},
     .gguf_suffix = "",
     .huggingface_suffix = "",
     .is_vector = true},
    {.id = kStateSkip,
     .gguf = "ssm_d",
     .huggingface = "mixer.D",
     .shape = {kValueHeads, kOne},
     .gguf_suffix = "",
     .huggingface_suffix = "",
     .is_vector = true},
    {.id = kStateNorm,
     .gguf = "ssm_norm",
     .huggingface = "mixer.norm",
     .shape = {kValueRows},
     .is_vector = true,
     .gguf_groups = kKeyHeads},
    {kStateOut, "ssm_out", "mixer.out_proj", {kHidden, kValueRows}},
    {kQ, "attn_q", "mixer.q_proj", {kQRows, kHidden}},
    {kK, "attn_k", "mixer.k_proj", {kKvRows, kHidden}},
    {kV, "attn_v", "mixer.v_proj", {kKvRows, kHidden}},
    {kAttentionOut, "attn_output", "mixer.o_proj", {kHidden, kQRows}},
    {kUp, "ffn_up", "mixer.up_proj", {kFfn, kHidden}},
    {kDown, "ffn_down", "mixer.down_proj", {kHidden, kFfn}},
    {kRouter, "ffn_gate_inp", "mixer.gate", {kExperts, kHidden}},
    {kRouterBias,
     "exp_probs_b",
     "mixer.gate.e_score_correction_bias",
     {kExperts},
     /*is_norm=*/true,
     ".bias",
     ""},
    {kExpertUp, "ffn_up_exps", "mixer.experts.up_proj", {kExperts, kExpertFfn, kExpertRow}},
    {kExpertDown, "ffn_down_exps", "mixer.experts.down_proj", {kExperts, kExpertRow, kExpertFfn}},
    {kSharedUp, "ffn_up_shexp", "mixer.shared_experts.up_proj", {kSharedFfn, kHidden}},
    {kSharedDown, "ffn_down_shexp", "mixer.shared_experts.down_proj", {kHidden, kSharedFfn}},
};

Result<std::string> layer_letters(const Json& json) {
  constexpr std::pair<std::string_view, char> kNames[] = {
      {"mamba", kMamba},         {"linear_attention", kMamba},
      {"attention", kAttention}, {"full_attention", kAttention},
      {"mlp", kFeedForward},     {"moe", kMixture}};
  const Json* list = find(json, "layers_block_type");
  std::string letters;
  if (list && list->is_array()) {
    for (const Json& type : *list) {
      const auto name = std::ranges::find_if(kNames, [&](const auto& known) { return type == known.first; });
      letters += name == std::end(kNames) ? '?' : name->second;
    }
  } else {
    DP_TRY(auto pattern, get_string(json, "hybrid_override_pattern"));
    letters = std::move(pattern).value_or("");
  }
  const std::string known = {kMamba, kAttention, kFeedForward, kMixture};
  if (!letters.empty() && letters.find_first_not_of(known) == std::string::npos) return letters;
  return fail(ErrorKind::kUnsupported,
              "Fields \"hybrid_override_pattern\" and \"layers_block_type\" say the layers \"%s\"; known are "
              "mamba (M), attention (*), mlp (-) and moe (E).",
              printable(letters).c_str());
}

Result<void> read_layers(const Json& json, ModelConfig& config) {
  DP_TRY(const std::string letters, layer_letters(json));
  if (letters.size() != config.n_layers) {
    return fail(ErrorKind::kInvalidInput, "The pattern of layers has %zu; field \"num_hidden_layers\" is %u.",
                letters.size(), config.n_layers);
  }
  for (const char letter : letters) {
    config.recurrent.is_recurrent.push_back(letter == kMamba);
    config.moe.is_moe.push_back(letter == kMixture);
    config.is_feed_forward.push_back(letter == kFeedForward || letter == kMixture);
  }
  config.is_unrotated.assign(config.n_layers, 1);
  return {};
}

Result<void> read_mamba(const Json& json, ModelConfig& config) {
  RecurrentConfig& c = config.recurrent;
  DP_TRY(c.conv_kernel, required_count(json, "conv_kernel"));
  DP_TRY(c.n_key_heads, required_count(json, "n_groups"));
  DP_TRY(c.n_value_heads, required_count(json, "mamba_num_heads"));
  DP_TRY(c.key_dim, required_count(json, "ssm_state_size"));
  DP_TRY(c.value_dim, required_count(json, "mamba_head_dim"));
  DP_CHECK(require_truth(json, "use_conv_bias", true));
  DP_CHECK(require_truth(json, "mamba_proj_bias", false));
  DP_CHECK(require_text(json, "mamba_hidden_act", "silu"));
  DP_CHECK(refuse_step_limit(json));
  return finish_mamba(config);
}

void set_what_no_key_says(MoeConfig& moe) {
  moe.score = RouterScore::kSigmoid;
  moe.has_score_bias = true;
  moe.norm_epsilon = kNormEpsilon;
  moe.group_score = GroupScore::kSumOfTwo;
}

Result<void> read_experts(const Json& json, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  if (std::ranges::count(moe.is_moe, 1) == 0) {
    moe = {};
    return {};
  }
  set_what_no_key_says(moe);
  DP_CHECK(required_count(json, "n_routed_experts"));
  DP_CHECK(read_huggingface_moe(json, config));
  DP_TRY(const uint32_t shared, required_count(json, "n_shared_experts"));
  if (shared != 1) {
    return fail(ErrorKind::kUnsupported, "Field \"n_shared_experts\" is %u; supported is 1.", shared);
  }
  DP_TRY(moe.shared_dim, required_count(json, "moe_shared_expert_intermediate_size"));
  DP_TRY(const auto row_dim, get_count(json, "moe_latent_size"));
  moe.row_dim = row_dim.value_or(0);
  DP_TRY(moe.norm_weights, bool_or(json, "norm_topk_prob", true));
  DP_TRY(const double scale, number_or(json, "routed_scaling_factor", 1.0));
  moe.weight_scale = static_cast<float>(scale);
  DP_TRY(const auto groups, get_count(json, "n_group"));
  DP_TRY(const auto used, get_count(json, "topk_group"));
  moe.n_groups = groups.value_or(1);
  moe.groups_used = used.value_or(1);
  // As in GGUF files, if no layer has the other width.
  if (moe.is_moe == config.is_feed_forward) config.ffn_dim = moe.expert_dim;
  return check_moe(config);
}

Result<void> read(const Json& json, ModelConfig& config) {
  DP_TRY(const double eps, number_or(json, "layer_norm_epsilon", 1e-5));
  config.norm_eps = static_cast<float>(eps);
  DP_CHECK(require_text(json, "mlp_hidden_act", "relu2"));
  DP_TRY(const auto head_dim, get_count(json, "attention_head_dim"));
  if (head_dim.value_or(config.head_dim) != config.head_dim) {
    return fail(ErrorKind::kUnsupported,
                "Field \"attention_head_dim\" is %u beside a \"head_dim\" of %u; supported is one of both.",
                *head_dim, config.head_dim);
  }
  DP_CHECK(read_layers(json, config));
  DP_CHECK(read_mamba(json, config));
  return read_experts(json, config);
}

Result<void> read_gguf(const GgufKeys& keys, ModelConfig& config) {
  config.is_unrotated.assign(config.n_layers, 1);
  DP_CHECK(read_gguf_mamba(keys, config));
  set_what_no_key_says(config.moe);
  DP_CHECK(read_gguf_moe(keys, config));
  if (config.moe.n_experts == 0) return {};
  config.moe.is_moe = config.is_feed_forward;
  DP_TRY(const auto row_dim, keys.count("moe_latent_size"));
  config.moe.row_dim = row_dim.value_or(0);
  return {};
}

std::vector<GgufField> write_gguf(const ModelConfig& config) {
  std::vector<GgufField> out = gguf_mamba_fields(config);
  for (GgufField& field : gguf_moe_fields(config)) {
    if (field.key != "leading_dense_block_count")
      out.push_back(std::move(field));  // the list says which layers are dense
  }
  if (config.moe.n_experts != 0) out.push_back({"expert_shared_count", 1u});
  if (config.moe.row_dim != 0) out.push_back({"moe_latent_size", config.moe.row_dim});
  return out;
}

constexpr Architecture kRow = {
    .family = "nemotron_h",
    .layer = kLayer,
    .recurrent_layer = kMambaLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .kv_heads_by_layer = true,
             .ffn_by_layer = true,
             .read = read_gguf,
             .write = write_gguf,
             .keys = kGgufKeys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kKeys,
                    .prefix = "backbone."},
};

}  // namespace
}  // namespace nemotron_h

constinit const Architecture rows::nemotron_h = nemotron_h::kRow;

}  // namespace doppler::formats
