// gpt-oss (OpenAI 2025): experts in each layer, biases everywhere, attention sinks, a window in every other layer,
// gates that clamp. Facts: transformers' GptOssConfig; llama.cpp's LLM_ARCH_OPENAI_MOE, whose files say neither the
// limit of the gates nor that yarn's range is not truncated.
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace gpt_oss {
namespace {

using enum TensorId;
using enum Dim;

constexpr float kLimit = 7.0f;  // of all published models
constexpr const char* kTruncate = "rope.scaling.yarn_truncate";
constexpr std::string_view kGguf[] = {"gpt-oss"};
constexpr HuggingFaceType kTypes[] = {{"gpt_oss", WindowRule::kPattern}};
constexpr FieldDefault kDefaults[] = {
    {"num_local_experts", 128, true}, {"num_experts_per_tok", 4, true},
    {"sliding_window", 128, true},    {"head_dim", 64, true},
    {"num_key_value_heads", 8, true}, {"max_position_embeddings", 131072, true},
    {"rms_norm_eps", 1e-5, false},    {"rope_theta", 150000, false}};
constexpr std::string_view kKeys[] = {"num_local_experts", "swiglu_limit"};
constexpr TensorId kLayer[] = {kAttentionNorm, kQ,      kK,          kV,        kSinks,     kAttentionOut,
                               kFfnNorm,       kRouter, kExpertGate, kExpertUp, kExpertDown};
constexpr TensorRow kTensors[] = {
    {kFfnNorm, "post_attention_norm", "post_attention_layernorm", {kHidden}, /*is_norm=*/true},
    {kRouter, "ffn_gate_inp", "mlp.router", {kExperts, kHidden}},
};

void set_what_no_key_says(ModelConfig& config) {
  config.attention_sinks = true;
  config.moe.score = RouterScore::kSoftmaxOfChosen;
}

Result<void> read(const Json& json, ModelConfig& config) {
  set_what_no_key_says(config);
  DP_TRY(const double limit, number_or(json, "swiglu_limit", kLimit));
  config.swiglu_limit = static_cast<float>(limit);
  return read_huggingface_moe(json, config);
}

Result<void> read_gguf(const GgufKeys& keys, ModelConfig& config) {
  set_what_no_key_says(config);
  config.swiglu_limit = kLimit;
  // As all published models; only files made here say otherwise.
  DP_TRY(config.rope.truncate, keys.truth(kTruncate, false));
  return read_gguf_moe(keys, config);
}

std::vector<GgufField> write_gguf(const ModelConfig& config) {
  std::vector<GgufField> out = gguf_moe_fields(config);
  if (config.rope.scaling == RopeScaling::kYarn && config.rope.truncate) out.push_back({kTruncate, true});
  return out;
}

constexpr Architecture kRow = {
    .family = "gpt_oss",
    .biases = Biases::kConfigKeys,
    .window_pattern = 2,
    .layer = kLayer,
    .own_tensors = kTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .window = WindowRule::kPattern,
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
}  // namespace gpt_oss

constinit const Architecture rows::gpt_oss = gpt_oss::kRow;

}  // namespace doppler::formats
