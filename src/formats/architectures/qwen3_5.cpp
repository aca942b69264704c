// Qwen 3.5, dense and with experts: three gated delta nets, then attention whose output is gated. Norms are stored as w
// - 1, but not that of the delta net. Facts: transformers' Qwen3_5TextConfig and Qwen3_5MoeTextConfig; llama.cpp's
// LLM_ARCH_QWEN35 and LLM_ARCH_QWEN35MOE, whose files have the value heads of delta nets in another order and call the
// second norm of a layer post_attention_norm. Qwen 3 Next (Qwen3NextConfig, LLM_ARCH_QWEN3NEXT) is the same with
// experts and has both gates of a delta net in one tensor.
#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/next_layer.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace qwen3_5 {
namespace {

using enum TensorId;

constexpr uint32_t kInterval = 4;  // every fourth layer is attention, if no key says otherwise

constexpr std::string_view kGguf[] = {"qwen35"}, kGgufMoe[] = {"qwen35moe"}, kGgufNext[] = {"qwen3next"};
constexpr HuggingFaceType kTypes[] = {{"qwen3_5_text", WindowRule::kNone}, {"qwen3_5", WindowRule::kNone}};
constexpr HuggingFaceType kMoeTypes[] = {{"qwen3_5_moe_text", WindowRule::kNone},
                                         {"qwen3_5_moe", WindowRule::kNone}};
constexpr HuggingFaceType kNextTypes[] = {{"qwen3_next", WindowRule::kNone}};
// Those of the dense model, then those of experts.
constexpr FieldDefault kAllDefaults[] = {{"head_dim", 256, true},
                                         {"max_position_embeddings", 32768, true},
                                         {"partial_rotary_factor", 0.25, false},
                                         {"linear_conv_kernel_dim", 4, true},
                                         {"linear_key_head_dim", 128, true},
                                         {"linear_value_head_dim", 128, true},
                                         {"linear_num_key_heads", 16, true},
                                         {"linear_num_value_heads", 32, true},
                                         {"num_experts", 256, true},
                                         {"num_experts_per_tok", 8, true},
                                         {"moe_intermediate_size", 512, true},
                                         {"shared_expert_intermediate_size", 512, true}};
constexpr std::span kDefaults = std::span(kAllDefaults).first<8>();
constexpr TensorId kAttentionLayer[] = {kAttentionNorm, kQ,       kAttentionGate, kK,  kV,   kQNorm, kKNorm,
                                        kAttentionOut,  kFfnNorm, kGate,          kUp, kDown};
constexpr TensorId kDeltaLayer[] = {
    kAttentionNorm, kDeltaQkv,  kDeltaGate, kDeltaRate, kDeltaDecay, kConv, kStateDecay,
    kStateTimeBias, kStateNorm, kStateOut,  kFfnNorm,   kGate,       kUp,   kDown};
constexpr TensorId kMoeAttentionLayer[] = {
    kAttentionNorm, kQ,        kAttentionGate, kK,          kV,        kQNorm,      kKNorm,
    kAttentionOut,  kFfnNorm,  kRouter,        kExpertGate, kExpertUp, kExpertDown, kSharedRouter,
    kSharedGate,    kSharedUp, kSharedDown};
constexpr TensorId kMoeDeltaLayer[] = {kAttentionNorm, kDeltaQkv,   kDeltaGate,     kDeltaRate, kDeltaDecay,
                                       kConv,          kStateDecay, kStateTimeBias, kStateNorm, kStateOut,
                                       kFfnNorm,       kRouter,     kExpertGate,    kExpertUp,  kExpertDown,
                                       kSharedRouter,  kSharedGate, kSharedUp,      kSharedDown};
constexpr TensorRow kOwnTensors[] = {
    {.id = kQ,
     .gguf = "attn_q",
     .huggingface = "self_attn.q_proj",
     .shape = {Dim::kQRows, Dim::kHidden},
     .parts = 2},
    {kFfnNorm, "post_attention_norm", "post_attention_layernorm", {Dim::kHidden}, /*is_norm=*/true},
};

// For each key head first its values' rates, then their decays.
constexpr TensorRow kNextTensors[] = {
    kOwnTensors[0],
    kOwnTensors[1],
    {.id = kDeltaRate,
     .gguf = "ssm_ba",
     .huggingface = "linear_attn.in_proj_ba",
     .shape = {Dim::kValueHeads, Dim::kHidden},
     .parts = 2},
    {.id = kDeltaDecay,
     .gguf = "ssm_ba",
     .huggingface = "linear_attn.in_proj_ba",
     .shape = {Dim::kValueHeads, Dim::kHidden},
     .part = 1,
     .parts = 2},
};
constexpr FieldDefault kNextDefaults[] = {{"head_dim", 256, true},
                                          {"max_position_embeddings", 32768, true},
                                          {"partial_rotary_factor", 0.25, false},
                                          {"linear_conv_kernel_dim", 4, true},
                                          {"linear_key_head_dim", 128, true},
                                          {"linear_value_head_dim", 128, true},
                                          {"linear_num_key_heads", 16, true},
                                          {"linear_num_value_heads", 32, true},
                                          {"num_experts", 512, true},
                                          {"num_experts_per_tok", 10, true},
                                          {"moe_intermediate_size", 512, true},
                                          {"shared_expert_intermediate_size", 512, true}};

void set_interval(ModelConfig& config, uint32_t interval) {
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    config.recurrent.is_recurrent.push_back((layer + 1) % interval != 0);
  }
}

Result<void> finish_delta(ModelConfig& config) {
  RecurrentConfig& c = config.recurrent;
  const bool fits = c.n_key_heads != 0 && c.n_value_heads % c.n_key_heads == 0 && c.n_value_heads <= 1024 &&
                    c.key_dim >= 1 && c.key_dim <= 512 && c.value_dim >= 1 && c.value_dim <= 512 &&
                    c.conv_kernel >= 2 && c.conv_kernel <= 16;
  if (!fits) {
    return fail(
        ErrorKind::kInvalidInput,
        "A delta net of %u heads of %u on %u of %u with a convolution over %u positions; allowed are whole "
        "multiples up to 1024 heads of 1 to 512, and 2 to 16 positions.",
        c.n_value_heads, c.value_dim, c.n_key_heads, c.key_dim, c.conv_kernel);
  }
  c.conv_channels = 2 * c.n_key_heads * c.key_dim + c.n_value_heads * c.value_dim;
  return {};
}

Result<void> read_huggingface(const Json& json, ModelConfig& config) {
  RecurrentConfig& c = config.recurrent;
  DP_TRY(c.conv_kernel, required_count(json, "linear_conv_kernel_dim"));
  DP_TRY(c.n_key_heads, required_count(json, "linear_num_key_heads"));
  DP_TRY(c.n_value_heads, required_count(json, "linear_num_value_heads"));
  DP_TRY(c.key_dim, required_count(json, "linear_key_head_dim"));
  DP_TRY(c.value_dim, required_count(json, "linear_value_head_dim"));
  DP_CHECK(require_truth(json, "attn_output_gate", true));
  DP_TRY(const auto interval, get_count(json, "full_attention_interval"));
  if (interval == 0) {
    return fail(ErrorKind::kInvalidInput, "Field \"full_attention_interval\" is 0; allowed is 1 or more.");
  }
  if (c.is_recurrent.empty()) set_interval(config, interval.value_or(kInterval));  // no layer_types
  DP_CHECK(finish_delta(config));
  return announce_next_layer(json, config);
}

Result<void> read_gguf(const GgufKeys& keys, ModelConfig& config) {
  RecurrentConfig& c = config.recurrent;
  DP_TRY(c.conv_kernel, keys.required("ssm.conv_kernel"));
  DP_TRY(c.key_dim, keys.required("ssm.state_size"));
  DP_TRY(c.n_key_heads, keys.required("ssm.group_count"));
  DP_TRY(c.n_value_heads, keys.required("ssm.time_step_rank"));
  DP_TRY(const uint32_t inner, keys.required("ssm.inner_size"));
  c.value_dim = c.n_value_heads == 0 ? 0 : inner / c.n_value_heads;
  c.is_tiled = architecture_of(config).gguf.tiles_value_heads && c.n_value_heads != c.n_key_heads;
  DP_CHECK(leave_out_guessing_layers(keys, config));
  DP_TRY(const auto interval, keys.count("full_attention_interval"));
  set_interval(config, std::max(1u, interval.value_or(kInterval)));
  return finish_delta(config);
}

std::vector<GgufField> write_gguf(const ModelConfig& config) {
  const RecurrentConfig& c = config.recurrent;
  const auto attention = std::ranges::find(c.is_recurrent, 0);
  return {{"ssm.conv_kernel", c.conv_kernel},
          {"ssm.state_size", c.key_dim},
          {"ssm.group_count", c.n_key_heads},
          {"ssm.time_step_rank", c.n_value_heads},
          {"ssm.inner_size", c.n_value_heads * c.value_dim},
          {"full_attention_interval", static_cast<uint32_t>(attention - c.is_recurrent.begin()) + 1}};
}

void set_what_no_key_says(MoeConfig& moe) {
  moe.norm_weights = true;
  moe.shared_gate = true;
}

// Qwen 3 Next's fields that Qwen 3.5 has not.
Result<void> check_next(const Json& json) {
  DP_CHECK(require_truth(json, "norm_topk_prob", true));
  DP_TRY(const auto step, get_count(json, "decoder_sparse_step"));
  DP_TRY(const std::vector<double> dense, get_numbers(json, "mlp_only_layers"));
  if (step.value_or(1) == 1 && dense.empty()) return {};
  return fail(
      ErrorKind::kUnsupported,
      "Field \"%s\" is not supported in models of type \"qwen3_next\" but where all layers have experts.",
      dense.empty() ? "decoder_sparse_step" : "mlp_only_layers");
}

Result<void> read_huggingface_experts(const Json& json, ModelConfig& config) {
  if (config.architecture == kNextTypes[0].model_type) DP_CHECK(check_next(json));
  DP_CHECK(read_huggingface(json, config));
  set_what_no_key_says(config.moe);
  DP_TRY(config.moe.shared_dim, required_count(json, "shared_expert_intermediate_size"));
  return read_huggingface_moe(json, config);
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

constexpr std::string_view kKeys[] = {"linear_conv_kernel_dim", "attn_output_gate"};
constexpr std::string_view kMoeKeys[] = {"linear_conv_kernel_dim", "attn_output_gate", "num_experts"};
constexpr std::string_view kGgufKeys[] = {"ssm.conv_kernel", "ssm.state_size"};
constexpr std::string_view kGgufMoeAndStateKeys[] = {"ssm.conv_kernel", "ssm.state_size", "expert_count"};

constexpr Architecture kQwen35Row = {
    .family = "qwen3_5",
    .layer = kAttentionLayer,
    .recurrent_layer = kDeltaLayer,
    .has_next_layer = true,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .tiles_value_heads = true,
             .read = read_gguf,
             .write = write_gguf,
             .keys = kGgufKeys,
             .interleaved_sections = true},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .norm_offset = 1.0f,
                    .defaults = kDefaults,
                    .recurrent_type = "linear_attention",
                    .read = read_huggingface,
                    .keys = kKeys},
};

constexpr Architecture kQwen35MoeRow = {
    .family = "qwen3_5_moe",
    .layer = kMoeAttentionLayer,
    .recurrent_layer = kMoeDeltaLayer,
    .has_next_layer = true,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGgufMoe,
             .pairing = RopePairing::kNeox,
             .tiles_value_heads = true,
             .read = read_gguf_experts,
             .write = write_gguf_experts,
             .keys = kGgufMoeAndStateKeys,
             .interleaved_sections = true},
    .huggingface = {.model_types = kMoeTypes,
                    .pairing = RopePairing::kNeox,
                    .norm_offset = 1.0f,
                    .defaults = kAllDefaults,
                    .recurrent_type = "linear_attention",
                    .read = read_huggingface_experts,
                    .keys = kMoeKeys},
};

constexpr Architecture kQwen3NextRow = {
    .family = "qwen3_next",
    .layer = kMoeAttentionLayer,
    .recurrent_layer = kMoeDeltaLayer,
    .has_next_layer = true,
    .own_tensors = kNextTensors,
    .gguf = {.architectures = kGgufNext,
             .pairing = RopePairing::kNeox,
             .read = read_gguf_experts,
             .write = write_gguf_experts,
             .keys = kGgufMoeAndStateKeys},
    .huggingface = {.model_types = kNextTypes,
                    .pairing = RopePairing::kNeox,
                    .norm_offset = 1.0f,
                    .defaults = kNextDefaults,
                    .recurrent_type = "linear_attention",
                    .read = read_huggingface_experts,
                    .keys = kMoeKeys},
};

}  // namespace
}  // namespace qwen3_5

constinit const Architecture rows::qwen3_5 = qwen3_5::kQwen35Row;
constinit const Architecture rows::qwen3_5_moe = qwen3_5::kQwen35MoeRow;
constinit const Architecture rows::qwen3_next = qwen3_5::kQwen3NextRow;

}  // namespace doppler::formats
