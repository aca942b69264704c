// LFM2, dense and with experts after the first layers: short convolutions with two gates, and attention with norms of q
// and k in between. Facts: transformers' Lfm2Config and Lfm2MoeConfig; llama.cpp's LLM_ARCH_LFM2 and LLM_ARCH_LFM2MOE,
// which write the count of kv heads layer by layer, 0 for convolutions.
#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace lfm2 {
namespace {

using enum TensorId;

constexpr float kNormEpsilon = 1e-6f;  // of the experts' weights: transformers' Lfm2MoeSparseMoeBlock
constexpr std::string_view kGguf[] = {"lfm2"}, kGgufMoe[] = {"lfm2moe"};
constexpr HuggingFaceType kTypes[] = {{"lfm2", WindowRule::kNone}};
constexpr HuggingFaceType kMoeTypes[] = {{"lfm2_moe", WindowRule::kNone}};
// The width's first name was block_ff_dim.
constexpr FieldDefault kDefaults[] = {{"rms_norm_eps", 1e-5, false},
                                      {"rope_theta", 1e6, false},
                                      {"max_position_embeddings", 128000, true},
                                      {"conv_L_cache", 3, true},
                                      {"intermediate_size", 12288, true}};
constexpr FieldDefault kMoeDefaults[] = {{"rms_norm_eps", 1e-5, false},
                                         {"rope_theta", 1e6, false},
                                         {"max_position_embeddings", 128000, true},
                                         {"conv_L_cache", 3, true},
                                         {"num_experts", 32, true},
                                         {"num_experts_per_tok", 4, true},
                                         {"moe_intermediate_size", 1792, true},
                                         {"num_dense_layers", 2, true}};
constexpr TensorId kAttentionLayer[] = {kAttentionNorm, kQ,       kK,    kV,  kQNorm, kKNorm,
                                        kAttentionOut,  kFfnNorm, kGate, kUp, kDown};
constexpr TensorId kConvLayer[] = {kAttentionNorm, kConvIn, kConv, kConvOut, kFfnNorm, kGate, kUp, kDown};
constexpr TensorId kMoeAttentionLayer[] = {
    kAttentionNorm, kQ,          kK,          kV,        kQNorm,      kKNorm, kAttentionOut, kFfnNorm,
    kRouter,        kRouterBias, kExpertGate, kExpertUp, kExpertDown, kGate,  kUp,           kDown};
constexpr TensorId kMoeConvLayer[] = {kAttentionNorm, kConvIn,     kConv,       kConvOut,  kFfnNorm,
                                      kRouter,        kRouterBias, kExpertGate, kExpertUp, kExpertDown,
                                      kGate,          kUp,         kDown};
constexpr TensorRow kOwnTensors[] = {
    {kFinalNorm, "token_embd_norm", "embedding_norm", {Dim::kHidden}, /*is_norm=*/true},
    {kAttentionNorm, "attn_norm", "operator_norm", {Dim::kHidden}, /*is_norm=*/true},
    {kFfnNorm, "ffn_norm", "ffn_norm", {Dim::kHidden}, /*is_norm=*/true},
    {kQNorm, "attn_q_norm", "self_attn.q_layernorm", {Dim::kHeadDim}, /*is_norm=*/true},
    {kKNorm, "attn_k_norm", "self_attn.k_layernorm", {Dim::kHeadDim}, /*is_norm=*/true},
    {kAttentionOut, "attn_output", "self_attn.out_proj", {Dim::kHidden, Dim::kQRows}},
    {.id = kConv,
     .gguf = "shortconv.conv",
     .huggingface = "conv.conv",
     .shape = {Dim::kConvChannels, Dim::kOne, Dim::kConvKernel},
     .is_vector = true},
    {kGate, "ffn_gate", "feed_forward.w1", {Dim::kFfn, Dim::kHidden}},
    {kUp, "ffn_up", "feed_forward.w3", {Dim::kFfn, Dim::kHidden}},
    {kDown, "ffn_down", "feed_forward.w2", {Dim::kHidden, Dim::kFfn}},
    {kRouter, "ffn_gate_inp", "feed_forward.gate", {Dim::kExperts, Dim::kHidden}},
    {kRouterBias, "exp_probs_b", "feed_forward.expert_bias", {Dim::kExperts}, /*is_norm=*/true, ".bias", ""},
    {kExpertGate, "ffn_gate_exps", "feed_forward.experts.w1", {Dim::kExperts, Dim::kExpertFfn, Dim::kHidden}},
    {kExpertUp, "ffn_up_exps", "feed_forward.experts.w3", {Dim::kExperts, Dim::kExpertFfn, Dim::kHidden}},
    {kExpertDown, "ffn_down_exps", "feed_forward.experts.w2", {Dim::kExperts, Dim::kHidden, Dim::kExpertFfn}},
};

void set_conv(ModelConfig& config, uint32_t kernel) {
  config.recurrent.conv_kernel = kernel;
  config.recurrent.conv_channels = config.hidden_dim;
}

// transformers' adjustment of the width in a config: two thirds, times a factor, in whole multiples.
Result<uint32_t> adjusted_ffn_dim(const Json& json, uint32_t width) {
  DP_TRY(const double factor, number_or(json, "block_ffn_dim_multiplier", 1.0));
  DP_TRY(const auto multiple, get_count(json, "block_multiple_of"));
  const uint32_t unit = std::max(1u, multiple.value_or(256));
  const auto scaled = static_cast<uint64_t>(factor * static_cast<double>(2ull * width / 3));
  const uint64_t whole = (scaled + unit - 1) / unit * unit;
  if (whole == 0 || whole > UINT32_MAX) {
    return fail(ErrorKind::kInvalidInput, "The feed-forward dimension %u times %g is not a usable number.",
                width, factor);
  }
  return static_cast<uint32_t>(whole);
}

// All but the feed-forward layers.
Result<void> read_layers(const Json& json, ModelConfig& config) {
  DP_TRY(double eps, number_or(json, "block_norm_eps", config.norm_eps));
  DP_TRY(eps, number_or(json, "norm_eps", eps));
  config.norm_eps = static_cast<float>(eps);
  DP_TRY(const bool has_bias, bool_or(json, "conv_bias", false));
  if (has_bias) {
    return fail(ErrorKind::kUnsupported, "Field \"conv_bias\" is not supported in models of type \"%s\".",
                config.architecture.c_str());
  }
  DP_TRY(const bool tied, bool_or(json, "tie_embedding", config.tied_embeddings));
  config.tied_embeddings = tied;
  DP_TRY(const uint32_t kernel, required_count(json, "conv_L_cache"));
  set_conv(config, kernel);
  if (!config.recurrent.is_recurrent.empty()) return {};  // layer_types
  DP_TRY(const std::vector<double> attention, get_numbers(json, "full_attn_idxs"));
  if (attention.empty()) {
    return fail(ErrorKind::kInvalidInput, "Fields \"layer_types\" and \"full_attn_idxs\" are missing.");
  }
  config.recurrent.is_recurrent.assign(config.n_layers, 1);
  for (const double index : attention) {
    if (!(index >= 0) || index >= config.n_layers) {
      return fail(ErrorKind::kInvalidInput, "Field \"full_attn_idxs\" names layer %g; the model has %u.",
                  index, config.n_layers);
    }
    config.recurrent.is_recurrent[static_cast<size_t>(index)] = 0;
  }
  return {};
}

Result<void> read_huggingface(const Json& json, ModelConfig& config) {
  DP_TRY(const auto width, get_count(json, "block_ff_dim"));
  config.ffn_dim = width.value_or(config.ffn_dim);
  DP_TRY(const bool adjusts, bool_or(json, "block_auto_adjust_ff_dim", true));
  if (adjusts) {
    DP_TRY(config.ffn_dim, adjusted_ffn_dim(json, config.ffn_dim));
  }
  return read_layers(json, config);
}

void set_what_no_key_says(MoeConfig& moe) {
  moe.score = RouterScore::kSigmoid;
  moe.has_score_bias = true;
  moe.norm_weights = true;
  moe.norm_epsilon = kNormEpsilon;
}

Result<void> read_huggingface_experts(const Json& json, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  set_what_no_key_says(moe);
  DP_CHECK(read_layers(json, config));
  DP_TRY(moe.has_score_bias, bool_or(json, "use_expert_bias", true));
  DP_TRY(moe.norm_weights, bool_or(json, "norm_topk_prob", true));
  DP_TRY(const double scale, number_or(json, "routed_scaling_factor", 1.0));
  moe.weight_scale = static_cast<float>(scale);
  DP_TRY(const uint32_t dense, required_count(json, "num_dense_layers"));
  set_leading_dense(config, dense);
  return read_huggingface_moe(json, config);
}

Result<void> read_gguf(const GgufKeys& keys, ModelConfig& config) {
  DP_TRY(const uint32_t kernel, keys.required("shortconv.l_cache"));
  set_conv(config, kernel);
  return {};
}

std::vector<GgufField> write_gguf(const ModelConfig& config) {
  return {{"shortconv.l_cache", config.recurrent.conv_kernel}};
}

Result<void> read_gguf_experts(const GgufKeys& keys, ModelConfig& config) {
  DP_CHECK(read_gguf(keys, config));
  set_what_no_key_says(config.moe);
  return read_gguf_moe(keys, config);
}

std::vector<GgufField> write_gguf_experts(const ModelConfig& config) {
  std::vector<GgufField> out = write_gguf(config);
  std::ranges::move(gguf_moe_fields(config), std::back_inserter(out));
  return out;
}

constexpr std::string_view kKeys[] = {"conv_L_cache", "full_attn_idxs"};
constexpr std::string_view kMoeKeys[] = {"conv_L_cache", "full_attn_idxs", "num_experts"};
constexpr std::string_view kGgufKeys[] = {"shortconv.l_cache"};
constexpr std::string_view kGgufMoeAndConvKeys[] = {"shortconv.l_cache", "expert_count"};

constexpr Architecture kLfm2Row = {
    .family = "lfm2",
    .layer = kAttentionLayer,
    .recurrent_layer = kConvLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .kv_heads_by_layer = true,
             .read = read_gguf,
             .write = write_gguf,
             .keys = kGgufKeys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .tied_embeddings = true,
                    .defaults = kDefaults,
                    .recurrent_type = "conv",
                    .read = read_huggingface,
                    .keys = kKeys},
};

constexpr Architecture kLfm2MoeRow = {
    .family = "lfm2_moe",
    .layer = kMoeAttentionLayer,
    .recurrent_layer = kMoeConvLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGgufMoe,
             .pairing = RopePairing::kNeox,
             .kv_heads_by_layer = true,
             .read = read_gguf_experts,
             .write = write_gguf_experts,
             .keys = kGgufMoeAndConvKeys},
    .huggingface = {.model_types = kMoeTypes,
                    .pairing = RopePairing::kNeox,
                    .tied_embeddings = true,
                    .defaults = kMoeDefaults,
                    .recurrent_type = "conv",
                    .read = read_huggingface_experts,
                    .keys = kMoeKeys},
};

}  // namespace
}  // namespace lfm2

constinit const Architecture rows::lfm2 = lfm2::kLfm2Row;
constinit const Architecture rows::lfm2_moe = lfm2::kLfm2MoeRow;

}  // namespace doppler::formats
