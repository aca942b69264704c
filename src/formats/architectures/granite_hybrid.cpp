// Granite 4: Mamba 2 and attention, with experts beside a shared one, or only a feed-forward layer. Facts:
// transformers' GraniteMoeHybridConfig, whose folders have gates and ups in one tensor (formats/expert_tensors.h);
// llama.cpp's LLM_ARCH_GRANITE_HYBRID, which writes the count of kv heads layer by layer, 0 for Mamba.
#include "base/json.h"
#include "formats/architectures/config_sources.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/granite_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/mamba_keys.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace granite_hybrid {
namespace {

using enum TensorId;
using enum Dim;

constexpr const char* kRotates = "rope.scaling.finetuned";
constexpr std::string_view kGguf[] = {"granitehybrid"};
constexpr HuggingFaceType kTypes[] = {{"granitemoehybrid", WindowRule::kNone}};
constexpr FieldDefault kDefaults[] = {{"num_local_experts", 8, true},
                                      {"num_experts_per_tok", 2, true},
                                      {"shared_intermediate_size", 1024, true},
                                      {"mamba_n_heads", 128, true},
                                      {"mamba_n_groups", 1, true},
                                      {"mamba_d_state", 256, true},
                                      {"mamba_d_conv", 4, true},
                                      {"mamba_expand", 2, true}};
constexpr std::string_view kKeys[] = {"embedding_multiplier",   "attention_multiplier", "residual_multiplier",
                                      "logits_scaling",         "num_local_experts",    "mamba_d_state",
                                      "position_embedding_type"};
constexpr std::string_view kGgufKeys[] = {"embedding_scale", "attention.scale", "residual_scale",
                                          "logit_scale",     "expert_count",    "ssm.conv_kernel",
                                          "ssm.state_size"};
constexpr TensorId kMambaLayer[] = {kAttentionNorm, kMambaIn,    kConv,      kConvBias,   kStateDecay,
                                    kStateTimeBias, kStateSkip,  kStateNorm, kStateOut,   kFfnNorm,
                                    kRouter,        kExpertGate, kExpertUp,  kExpertDown, kSharedGate,
                                    kSharedUp,      kSharedDown, kGate,      kUp,         kDown};
constexpr TensorRow kOwnTensors[] = {
    {.id = kConv,
     .gguf = "ssm_conv1d",
     .huggingface = "mamba.conv1d",
     .shape = {kConvChannels, kOne, kConvKernel},
     .is_vector = true},
    {.id = kConvBias,
     .gguf = "ssm_conv1d.bias",
     .huggingface = "mamba.conv1d.bias",
     .shape = {kConvChannels},
     .gguf_suffix = "",
     .huggingface_suffix = "",
     .is_vector = true},
    {.id = kStateDecay,
     .gguf = "ssm_a",
     .huggingface = "mamba.A_log",
     .shape = {kValueHeads, kOne},
     .gguf_suffix = "",
     .huggingface_suffix = "",
     .is_vector = true,
     .is_log = true},
    {.id = kStateTimeBias,
     .gguf = "ssm_dt.bias",
     .huggingface = "mamba.dt_bias",
     .shape = {kValueHeads},
     .gguf_suffix = "",
     .huggingface_suffix = "",
     .is_vector = true},
    {.id = kStateNorm,
     .gguf = "ssm_norm",
     .huggingface = "mamba.norm",
     .shape = {kValueRows},
     .is_vector = true,
     .gguf_groups = kKeyHeads},
    {kStateOut, "ssm_out", "mamba.out_proj", {kHidden, kValueRows}},
    {kGate, "ffn_gate", "shared_mlp.gate_proj", {kFfn, kHidden}},
    {kUp, "ffn_up", "shared_mlp.up_proj", {kFfn, kHidden}},
    {kDown, "ffn_down", "shared_mlp.output_linear", {kHidden, kFfn}},
    {kRouter, "ffn_gate_inp", "block_sparse_moe.router.layer", {kExperts, kHidden}},
    {kExpertGate, "ffn_gate_exps", "block_sparse_moe.gate_proj", {kExperts, kExpertFfn, kHidden}},
    {kExpertUp, "ffn_up_exps", "block_sparse_moe.up_proj", {kExperts, kExpertFfn, kHidden}},
    {kExpertDown, "ffn_down_exps", "block_sparse_moe.output_linear", {kExperts, kHidden, kExpertFfn}},
    {kSharedGate, "ffn_gate_shexp", "shared_mlp.gate_proj", {kSharedFfn, kHidden}},
    {kSharedUp, "ffn_up_shexp", "shared_mlp.up_proj", {kSharedFfn, kHidden}},
    {kSharedDown, "ffn_down_shexp", "shared_mlp.output_linear", {kHidden, kSharedFfn}},
};

// Absent, null and "nope" are one.
Result<void> read_rotation(const Json& json, ModelConfig& config) {
  DP_TRY(const auto type, get_string(json, "position_embedding_type"));
  const std::string name = type.value_or("nope");
  if (name == "rope") return {};
  if (name != "nope") {
    return fail(ErrorKind::kUnsupported,
                "Field \"position_embedding_type\" is \"%s\"; known are \"rope\" and \"nope\".",
                printable(name).c_str());
  }
  config.is_unrotated.assign(config.n_layers, 1);
  return {};
}

Result<void> read_mamba(const Json& json, ModelConfig& config) {
  RecurrentConfig& c = config.recurrent;
  DP_TRY(c.conv_kernel, required_count(json, "mamba_d_conv"));
  DP_TRY(c.n_key_heads, required_count(json, "mamba_n_groups"));
  DP_TRY(c.n_value_heads, required_count(json, "mamba_n_heads"));
  DP_TRY(c.key_dim, required_count(json, "mamba_d_state"));
  // transformers refuses a mamba_d_head that does not follow from these.
  DP_TRY(const uint32_t expand, required_count(json, "mamba_expand"));
  const uint64_t inner = uint64_t{expand} * config.hidden_dim;
  if (c.n_value_heads == 0 || inner % c.n_value_heads != 0 || inner > UINT32_MAX) {
    return fail(ErrorKind::kInvalidInput, "Field \"mamba_n_heads\" is %u, which does not divide %u times %u.",
                c.n_value_heads, expand, config.hidden_dim);
  }
  c.value_dim = static_cast<uint32_t>(inner) / c.n_value_heads;
  DP_CHECK(require_truth(json, "mamba_conv_bias", true));
  DP_CHECK(require_truth(json, "mamba_proj_bias", false));
  DP_CHECK(refuse_step_limit(json));
  if (!find(json, "layer_types")) return fail(ErrorKind::kInvalidInput, "Field \"layer_types\" is missing.");
  return finish_mamba(config);
}

Result<void> read(const Json& json, ModelConfig& config) {
  DP_CHECK(read_huggingface_granite(json, config));
  DP_CHECK(read_rotation(json, config));
  DP_CHECK(read_mamba(json, config));
  config.moe.score = RouterScore::kSoftmaxOfChosen;
  DP_CHECK(read_huggingface_moe(json, config));
  DP_TRY(const uint32_t shared, required_count(json, "shared_intermediate_size"));
  if (config.moe.n_experts == 0) {
    config.moe = {};
    config.ffn_dim = shared;
    return check_config(config);
  }
  config.moe.shared_dim = shared;
  return check_moe(config);
}

Result<void> read_gguf(const GgufKeys& keys, ModelConfig& config) {
  DP_CHECK(read_gguf_granite(keys, config));
  DP_CHECK(read_gguf_mamba(keys, config));
  config.moe.score = RouterScore::kSoftmaxOfChosen;
  return read_gguf_moe(keys, config);
}

std::vector<GgufField> write_gguf(const ModelConfig& config) {
  std::vector<GgufField> out = gguf_granite_fields(config);
  for (auto* fields : {gguf_mamba_fields, gguf_moe_fields}) {
    for (GgufField& field : fields(config)) out.push_back(std::move(field));
  }
  out.push_back({kRotates, is_rotated_layer(config, 0)});
  return out;
}

constexpr Architecture kRow = {
    .family = "granite_hybrid",
    .layer = kPreNormMoeLayer,
    .recurrent_layer = kMambaLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kGptJ,
             .kv_heads_by_layer = true,
             .read = read_gguf,
             .write = write_gguf,
             .keys = kGgufKeys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .tied_embeddings = true,
                    .defaults = kDefaults,
                    .recurrent_type = "mamba",
                    .read = read,
                    .keys = kKeys},
};

}  // namespace
}  // namespace granite_hybrid

constinit const Architecture rows::granite_hybrid = granite_hybrid::kRow;

}  // namespace doppler::formats
