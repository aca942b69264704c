// DeepSeek V2 and V3, Kimi K2 and GLM 4.7 Flash, which are V3 under other names, and Mistral 4, whose attention is
// theirs: keys and values from a latent, experts after the first layers, beside a shared one. Facts: transformers'
// DeepseekV2Config, DeepseekV3Config, Glm4MoeLiteConfig, Kimi_K25Config and Mistral4Config; llama.cpp's
// LLM_ARCH_DEEPSEEK2 and LLM_ARCH_MISTRAL4, whose files have a tenth of yarn's mscale_all_dim.
#include "base/json.h"
#include "base/text.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/mla_keys.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace deepseek {
namespace {

using enum TensorId;
using enum Dim;

constexpr float kNormEpsilon = 1e-20f;  // transformers' DeepseekV3TopkRouter
constexpr const char* kDenseLayers = "first_k_dense_replace";
constexpr std::string_view kDeepSeekGguf[] = {"deepseek2"}, kMistralGguf[] = {"mistral4"};
constexpr HuggingFaceType kDeepSeekTypes[] = {{"deepseek_v2", WindowRule::kNone},
                                              {"deepseek_v3", WindowRule::kNone},
                                              {"glm4_moe_lite", WindowRule::kNone},
                                              {"kimi_k2", WindowRule::kNone}};
constexpr HuggingFaceType kMistralTypes[] = {{"mistral4", WindowRule::kNone}};
constexpr TensorId kLayer[] = {kAttentionNorm, kQ,          kQDown,    kQDownNorm,    kQUp,        kLatent,
                               kLatentNorm,    kKeyUp,      kValueUp,  kAttentionOut, kFfnNorm,    kRouter,
                               kRouterBias,    kExpertGate, kExpertUp, kExpertDown,   kSharedGate, kSharedUp,
                               kSharedDown,    kGate,       kUp,       kDown};
constexpr TensorRow kTensors[] = {
    {kQ, "attn_q", "self_attn.q_proj", {kLatentQRows, kHidden}},
    {kAttentionOut, "attn_output", "self_attn.o_proj", {kHidden, kLatentValueRows}},
    {kSharedGate, "ffn_gate_shexp", "mlp.shared_experts.gate_proj", {kSharedFfn, kHidden}},
    {kSharedUp, "ffn_up_shexp", "mlp.shared_experts.up_proj", {kSharedFfn, kHidden}},
    {kSharedDown, "ffn_down_shexp", "mlp.shared_experts.down_proj", {kHidden, kSharedFfn}},
};

// Sets the fields that follow from the scores of DeepSeek's routers: V3's sigmoids are corrected for the choice, and
// groups compared by two.
void set_by_score(MoeConfig& moe) {
  const bool is_v3 = moe.score == RouterScore::kSigmoid;
  moe.has_score_bias = is_v3;
  moe.group_score = is_v3 ? GroupScore::kSumOfTwo : GroupScore::kMax;
}

Result<void> read_groups(const Json& json, MoeConfig& moe) {
  DP_TRY(const auto groups, get_count(json, "n_group"));
  DP_TRY(const auto used, get_count(json, "topk_group"));
  moe.n_groups = groups.value_or(1);
  moe.groups_used = used.value_or(1);
  return {};
}

// The kind of each layer's feed-forward part: by a list, or by the number of dense layers at the begin. GLM 4.7 Flash's
// default is one.
Result<void> read_dense_layers(const Json& json, ModelConfig& config) {
  const Json* types = find(json, "mlp_layer_types");
  if (types && types->is_array()) {
    if (types->size() != config.n_layers) {
      return fail(ErrorKind::kInvalidInput,
                  "Field \"mlp_layer_types\" has %zu names; the model has %u layers.", types->size(),
                  config.n_layers);
    }
    for (const Json& type : *types) {
      if (type != "dense" && type != "sparse") {
        return fail(ErrorKind::kUnsupported,
                    "Field \"mlp_layer_types\" has %s; known are \"dense\" and \"sparse\".",
                    printable(to_text(type)).c_str());
      }
      config.moe.is_moe.push_back(type == "sparse");
    }
    return {};
  }
  const bool has_default = config.architecture == "glm4_moe_lite" && !find(json, kDenseLayers);
  DP_TRY(const uint32_t dense, has_default ? Result<uint32_t>(1u) : required_count(json, kDenseLayers));
  set_leading_dense(config, dense);
  return {};
}

// Reads the fields that all these models share.
Result<void> read(const Json& json, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  config.attention_scale = latent_attention_scale(config);
  DP_CHECK(require_truth(json, "rope_interleave", true));
  DP_TRY(const auto every, get_count(json, "moe_layer_freq"));
  if (every.value_or(1) != 1) {
    return fail(ErrorKind::kUnsupported, "Field \"moe_layer_freq\" is %u; supported is 1.", *every);
  }
  DP_CHECK(read_huggingface_moe(json, config));
  if (moe.n_experts == 0) {
    moe = {};
    return {};
  }
  moe.norm_epsilon = kNormEpsilon;
  DP_TRY(const auto shared, get_count(json, "n_shared_experts"));
  moe.shared_dim = shared.value_or(0) * moe.expert_dim;
  DP_TRY(const double scale, number_or(json, "routed_scaling_factor", 1.0));
  moe.weight_scale = static_cast<float>(scale);
  DP_CHECK(read_dense_layers(json, config));
  return check_moe(config);
}

Result<void> read_deepseek(const Json& json, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  if (config.architecture != "deepseek_v2") {
    DP_CHECK(require_text(json, "scoring_func", "sigmoid"));
    DP_CHECK(require_text(json, "topk_method", "noaux_tc"));
    moe.score = RouterScore::kSigmoid;
    DP_TRY(moe.norm_weights, bool_or(json, "norm_topk_prob", true));
    DP_CHECK(read_groups(json, moe));
  } else {
    DP_CHECK(require_text(json, "scoring_func", "softmax"));
    DP_CHECK(require_truth(json, "norm_topk_prob", false));
    DP_TRY(const auto method, get_string(json, "topk_method"));
    if (method.value_or("greedy") != "greedy") {
      DP_CHECK(require_text(json, "topk_method", "group_limited_greedy"));
      DP_CHECK(read_groups(json, moe));
    }
  }
  set_by_score(moe);
  return read(json, config);
}

Result<void> read_mistral(const Json& json, ModelConfig& config) {
  config.moe.group_score = GroupScore::kSumOfTwo;
  DP_TRY(config.moe.norm_weights, bool_or(json, "norm_topk_prob", true));
  DP_CHECK(read_groups(json, config.moe));
  return read(json, config);
}

Result<void> read_gguf(const GgufKeys& keys, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  DP_CHECK(read_gguf_latents(keys, config));
  DP_TRY(config.query_scaling.beta, keys.number("attention.temperature_scale", 0));
  if (config.query_scaling.beta != 0) {
    DP_TRY(config.query_scaling.ctx_len,
           keys.number("attention.temperature_length", config.rope.original_ctx_len));
  }
  DP_CHECK(leave_out_guessing_layers(keys, config));
  moe.norm_epsilon = kNormEpsilon;
  DP_CHECK(read_gguf_moe(keys, config));
  if (moe.n_experts == 0) return {};
  if (config.family == rows::mistral4.family) {
    moe.group_score = GroupScore::kSumOfTwo;
  } else {
    set_by_score(moe);
  }
  return {};
}

// llama.cpp reads how many shared experts there are, not their width.
std::vector<GgufField> write_gguf(const ModelConfig& config) {
  std::vector<GgufField> out = gguf_latent_fields(config);
  for (GgufField& field : gguf_moe_fields(config)) out.push_back(std::move(field));
  if (config.moe.shared_dim != 0) {
    out.push_back({"expert_shared_count", config.moe.shared_dim / config.moe.expert_dim});
  }
  const QueryScaling& queries = config.query_scaling;
  if (queries.beta != 0) {
    out.push_back({"attention.temperature_scale", static_cast<float>(queries.beta)});
    out.push_back({"attention.temperature_length", static_cast<uint32_t>(queries.ctx_len)});
  }
  return out;
}

constexpr GgufRow gguf_row(std::span<const std::string_view> architectures) {
  return {.architectures = architectures,
          .pairing = RopePairing::kGptJ,
          .yarn_log_multiplier = 0.1f,
          .read = read_gguf,
          .write = write_gguf,
          .keys = kGgufLatentKeys};
}

constexpr Architecture kDeepseekRow = {
    .family = "deepseek",
    .layer = kLayer,
    .own_tensors = kTensors,
    .gguf = gguf_row(kDeepSeekGguf),
    .huggingface = {.model_types = kDeepSeekTypes,
                    .pairing = RopePairing::kGptJ,
                    .latent_attention = true,
                    .read = read_deepseek,
                    .keys = kHuggingFaceLatentKeys},
};

constexpr Architecture kMistral4Row = {
    .family = "mistral4",
    .layer = kLayer,
    .own_tensors = kTensors,
    .gguf = gguf_row(kMistralGguf),
    .huggingface = {.model_types = kMistralTypes,
                    .pairing = RopePairing::kGptJ,
                    .latent_attention = true,
                    .read = read_mistral,
                    .keys = kHuggingFaceLatentKeys},
};

}  // namespace
}  // namespace deepseek

constinit const Architecture rows::deepseek = deepseek::kDeepseekRow;
constinit const Architecture rows::mistral4 = deepseek::kMistral4Row;

}  // namespace doppler::formats
