// The text model of Gemma 4. Layers that see everything have heads of another size, rotate only a part, and may have
// their keys as values. The last layers may read the keys and values of earlier ones, with a wider feed-forward layer.
// Facts: transformers' Gemma4TextConfig; llama.cpp's src/models/gemma4.cpp and conversion/gemma.py.
#include <algorithm>
#include <string>

#include "base/json.h"
#include "base/text.h"
#include "formats/architectures/config_sources.h"
#include "formats/architectures/gemma_keys.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/huggingface_rope.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace gemma4 {
namespace {

using enum TensorId;

constexpr uint32_t kPattern = 6;  // every sixth layer sees everything
constexpr double kSlidingTheta = 10000.0;
constexpr double kUsualTheta = 1e6, kUsualTurningPart = 0.25;  // of layers that see everything

constexpr std::string_view kGguf[] = {"gemma4"};
constexpr HuggingFaceType kTypes[] = {{"gemma4_text", WindowRule::kPattern},
                                      {"gemma4", WindowRule::kPattern}};
constexpr FieldDefault kDefaults[] = {
    {"vocab_size", 262144, true},
    {"hidden_size", 2304, true},
    {"intermediate_size", 9216, true},
    {"num_hidden_layers", 30, true},
    {"num_attention_heads", 8, true},
    {"num_key_value_heads", 4, true},
    {"head_dim", 256, true},
    {"global_head_dim", 512, true},
    {"max_position_embeddings", 131072, true},
    {"rms_norm_eps", 1e-6, false},
    {"sliding_window", 512, true},
    {"hidden_size_per_layer_input", 256, true},
    {"vocab_size_per_layer_input", 262144, true},
};
constexpr std::string_view kKeys[] = {
    "final_logit_softcapping",     "attention_k_eq_v",    "global_head_dim",
    "num_kv_shared_layers",        "num_experts",         "enable_moe_block",
    "hidden_size_per_layer_input", "use_double_wide_mlp", "use_bidirectional_attention"};
constexpr std::string_view kGgufKeys[] = {"final_logit_softcapping", "attention.shared_kv_layers",
                                          "embedding_length_per_layer_input", "expert_count"};
constexpr TensorId kModel[] = {kLayerTable, kLayerTableProj, kLayerTableNorm};
constexpr TensorId kLayer[] = {kAttentionNorm,
                               kQ,
                               kK,
                               kV,
                               kQNorm,
                               kKNorm,
                               kAttentionOut,
                               kPostAttentionNorm,
                               kFfnNorm,
                               kGate,
                               kUp,
                               kDown,
                               kDenseOutNorm,
                               kRouterNorm,
                               kRouter,
                               kExpertScale,
                               kExpertNorm,
                               kExpertGate,
                               kExpertUp,
                               kExpertDown,
                               kExpertOutNorm,
                               kPostFfnNorm,
                               kLayerInputGate,
                               kLayerInputProj,
                               kLayerInputNorm,
                               kLayerScale};
constexpr TensorRow kOwnTensors[] = {
    {kFfnNorm, "ffn_norm", "pre_feedforward_layernorm", {Dim::kHidden}, /*is_norm=*/true},
    {kRouter, "ffn_gate_inp", "router.proj", {Dim::kExperts, Dim::kHidden}},
    {kExpertGate, "ffn_gate_exps", "experts.gate_proj", {Dim::kExperts, Dim::kExpertFfn, Dim::kHidden}},
    {kExpertUp, "ffn_up_exps", "experts.up_proj", {Dim::kExperts, Dim::kExpertFfn, Dim::kHidden}},
    {kExpertDown, "ffn_down_exps", "experts.down_proj", {Dim::kExperts, Dim::kHidden, Dim::kExpertFfn}},
};

// Sets the numbers of layers that slide, if they differ from the others'.
void set_sliding(ModelConfig& config, uint32_t head_dim, uint32_t kv_heads) {
  config.sliding_head_dim = head_dim == config.head_dim ? 0 : head_dim;
  config.sliding_kv_heads = kv_heads == config.n_kv_heads ? 0 : kv_heads;
}

// global_head_dim and num_global_key_value_heads; as newer files have it, per_layer_config, by the number of the layer.
Result<void> read_heads(const Json& json, ModelConfig& config) {
  DP_TRY(config.values_are_keys, bool_or(json, "attention_k_eq_v", false));
  const uint32_t sliding_dim = config.head_dim, sliding_kv_heads = config.n_kv_heads;
  DP_TRY(config.head_dim, required_count(json, "global_head_dim"));
  DP_TRY(const auto kv_heads, get_count(json, "num_global_key_value_heads"));
  if (config.values_are_keys) config.n_kv_heads = kv_heads.value_or(config.n_kv_heads);
  const Json* layers = find(json, "per_layer_config");
  if (layers && layers->is_object()) {
    for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
      const Json* own = find(*layers, std::to_string(layer));
      if (is_sliding_layer(config, layer)) {
        if (!own) continue;
        return fail(ErrorKind::kUnsupported, "Field \"per_layer_config\" is of layer %u, which slides.",
                    layer);
      }
      const Json none = Json::object();
      DP_TRY(const auto own_dim, get_count(own ? *own : none, "head_dim"));
      DP_TRY(const auto own_kv_heads, get_count(own ? *own : none, "num_key_value_heads"));
      config.head_dim = own_dim.value_or(sliding_dim);
      config.n_kv_heads = own_kv_heads.value_or(sliding_kv_heads);
    }
  }
  set_sliding(config, sliding_dim, sliding_kv_heads);
  DP_TRY(config.rope, read_rope(json, config, RopePairing::kNeox));
  if (!find(json, "rope_parameters") && !find(json, "rope_scaling")) {
    config.rope.theta = kUsualTheta;
    config.rope.scaling = RopeScaling::kProportional;
    config.rope.turning_part = kUsualTurningPart;
    config.rope.rotary_dim = config.head_dim;
  }
  config.local_rope.rotary_dim = sliding_dim;
  return check_config(config);
}

// Tokens of pictures have the inputs of the token that fills texts up.
Result<uint32_t> number_of_pad(const Json& json, const ModelConfig& config) {
  if (config.layer_input.dim == 0) return 0u;
  DP_TRY(const auto pad, get_integer(json, "pad_token_id"));
  if (pad.value_or(0) >= 0 && pad.value_or(0) < config.layer_input.vocab_size)
    return static_cast<uint32_t>(pad.value_or(0));
  return fail(ErrorKind::kInvalidInput, "Field \"pad_token_id\" is %lld; allowed are 0 to %u.",
              static_cast<long long>(*pad), config.layer_input.vocab_size - 1);
}

Result<void> read(const Json& json, ModelConfig& config) {
  DP_TRY(const auto both_ways, get_string(json, "use_bidirectional_attention"));
  if (both_ways && *both_ways != "vision") {  // of pictures: PictureSight
    return fail(ErrorKind::kUnsupported,
                "Field \"use_bidirectional_attention\" is \"%s\"; known is \"vision\".",
                printable(*both_ways).c_str());
  }
  DP_CHECK(read_heads(json, config));
  DP_CHECK(read_huggingface_gemma(json, config));
  DP_TRY(config.layer_input.image_row, number_of_pad(json, config));
  DP_TRY(const bool is_wide, bool_or(json, "use_double_wide_mlp", false));
  if (is_wide && config.shared_kv_layers != 0) config.shared_ffn_dim = 2 * config.ffn_dim;
  DP_TRY(const bool has_experts, bool_or(json, "enable_moe_block", false));
  if (!has_experts) return {};
  config.moe.norm_weights = config.moe.is_beside_dense = true;
  DP_TRY(config.moe.n_used, required_count(json, "top_k_experts"));
  return read_huggingface_moe(json, config);
}

// Error: a list has different numbers for layers of one kind.
Result<void> check_lists(const ModelConfig& config, const std::vector<uint32_t>& kv_heads,
                         const std::vector<uint32_t>& ffn_dims) {
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    const auto fits = [&](const std::vector<uint32_t>& list, uint32_t wanted) {
      return list.size() < 2 || (list.size() == config.n_layers && list[layer] == wanted);
    };
    if (fits(kv_heads, kv_heads_of(config, layer)) && fits(ffn_dims, ffn_dim_of(config, layer))) continue;
    return fail(
        ErrorKind::kUnsupported,
        "Layer %u has another count of kv heads, or another feed-forward dimension, than layers of its "
        "kind.",
        layer);
  }
  return {};
}

Result<void> read_gguf(const GgufKeys& keys, ModelConfig& config) {
  DP_CHECK(read_gguf_gemma(keys, config));
  DP_TRY(const auto head_dim, keys.count("attention.key_length_swa"));
  DP_TRY(const std::vector<uint32_t> kv_heads, keys.counts("attention.head_count_kv"));
  // The first layer of each kind speaks for the others.
  const auto first_of = [&](uint8_t kind) {
    const auto at =
        static_cast<size_t>(std::ranges::find(config.is_sliding, kind) - config.is_sliding.begin());
    return at < std::min(kv_heads.size(), config.is_sliding.size()) ? kv_heads[at] : config.n_kv_heads;
  };
  const uint32_t sliding_kv_heads = first_of(1);
  config.n_kv_heads = first_of(0);
  set_sliding(config, head_dim.value_or(config.head_dim), sliding_kv_heads);
  DP_TRY(const auto rotary_dim, keys.count("rope.dimension_count_swa"));
  config.local_rope.rotary_dim = rotary_dim.value_or(head_dim.value_or(config.head_dim));
  DP_TRY(const std::vector<uint32_t> ffn_dims, keys.counts("feed_forward_length"));
  if (ffn_dims.size() == config.n_layers && ffn_dims.back() != config.ffn_dim &&
      config.shared_kv_layers != 0) {
    config.shared_ffn_dim = ffn_dims.back();
  }
  DP_CHECK(check_lists(config, kv_heads, ffn_dims));
  DP_CHECK(check_config(config));
  config.moe.norm_weights = config.moe.is_beside_dense = true;
  return read_gguf_moe(keys, config);
}

std::vector<GgufField> write_gguf(const ModelConfig& config) {
  std::vector<GgufField> out = gguf_gemma_fields(config);
  const uint32_t head_dim = config.sliding_head_dim == 0 ? config.head_dim : config.sliding_head_dim;
  out.push_back({"attention.key_length_swa", head_dim});
  out.push_back({"attention.value_length_swa", head_dim});
  out.push_back({"rope.dimension_count_swa", config.local_rope.rotary_dim});
  for (GgufField& field : gguf_moe_fields(config)) out.push_back(std::move(field));
  return out;
}

constexpr Architecture kRow = {
    .family = "gemma4",
    .activation = ActivationFn::kGeluTanh,
    .window_pattern = kPattern,
    .sliding_rope_theta = kSlidingTheta,
    .layer = kLayer,
    .model = kModel,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .window = WindowRule::kPattern,
             .attention_scale = gemma_attention_scale,
             .has_lists = true,
             .read = read_gguf,
             .write = write_gguf,
             .keys = kGgufKeys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .activation = "hidden_activation",
                    .tied_embeddings = true,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kKeys},
};

}  // namespace
}  // namespace gemma4

constinit const Architecture rows::gemma4 = gemma4::kRow;

}  // namespace doppler::formats
