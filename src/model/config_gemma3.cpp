// What gemma3 has more than other families: layers that slide and layers that do not, with rotations of their own, and
// a scale of attention that need not follow from the head dimension. Facts: transformers' Gemma3TextConfig and
// Gemma3Config; llama.cpp's src/llama-model.cpp, LLM_ARCH_GEMMA3.
#include <cmath>

#include "base/json.h"
#include "model/config_sources.h"

namespace doppler::model {
namespace {

constexpr uint32_t kPattern = 6;  // every sixth layer sees everything
constexpr double kLocalTheta = 10000.0;
constexpr uint32_t kLayers27B = 62;  // the one size whose scale follows from hidden_dim / n_heads

// transformers' defaults; published files leave out what equals them.
struct Default {
  const char* key;
  double value;
  bool is_count;
};
constexpr Default kDefaults[] = {
    {"vocab_size", 262208, true},
    {"hidden_size", 2304, true},
    {"intermediate_size", 9216, true},
    {"num_hidden_layers", 26, true},
    {"num_attention_heads", 8, true},
    {"num_key_value_heads", 4, true},
    {"head_dim", 256, true},
    {"max_position_embeddings", 131072, true},
    {"rms_norm_eps", 1e-6, false},
    {"rope_theta", 1e6, false},
    {"rope_local_base_freq", kLocalTheta, false},
    {"query_pre_attn_scalar", 256, false},
    {"sliding_window", 4096, true},
    {"sliding_window_pattern", kPattern, true},
};

void set_local_rope(ModelConfig& config, double theta) {
  config.local_rope = {
      .theta = theta, .rotary_dim = config.rope.rotary_dim, .interleaved = config.rope.interleaved};
}

Result<void> set_pattern(ModelConfig& config, int64_t pattern) {
  if (pattern < 1 || pattern > UINT32_MAX) {
    return fail(ErrorKind::kInvalidInput, "The sliding window pattern is %lld; allowed is 1 to 2^32-1.",
                static_cast<long long>(pattern));
  }
  if (config.window == 0) return {};
  // The count is checked only after this; more layers than are allowed need no entry.
  constexpr uint32_t kMostLayers = 1024;
  config.slides.resize(std::min(config.n_layers, kMostLayers));
  for (size_t i = 0; i < config.slides.size(); ++i) {
    config.slides[i] = (i + 1) % static_cast<uint64_t>(pattern) != 0;
  }
  return {};
}

Result<void> set_layer_types(ModelConfig& config, const Json& types) {
  if (!types.is_array() || types.size() != config.n_layers) {
    return fail(ErrorKind::kInvalidInput, "Field \"layer_types\" must be a list of one name a layer (%u).",
                config.n_layers);
  }
  config.slides.clear();
  for (const Json& type : types) {
    const bool slides = type == "sliding_attention";
    if (!slides && type != "full_attention") {
      return fail(ErrorKind::kUnsupported,
                  "Layer type %s is not known; known are \"sliding_attention\" and \"full_attention\".",
                  printable(to_text(type)).c_str());
    }
    config.slides.push_back(slides && config.window != 0);
  }
  return {};
}

Result<void> refuse_final_softcap(double softcap) {
  if (softcap == 0) return {};
  return fail(ErrorKind::kUnsupported,
              "A softcap of the final logits (%g) is not supported in gemma3 models.", softcap);
}

Result<void> set_scale(ModelConfig& config, double squared) {
  if (!(squared > 0) || !std::isfinite(squared)) {
    return fail(ErrorKind::kInvalidInput, "The query scalar is %g; it must be above 0.", squared);
  }
  config.attention_scale = static_cast<float>(1 / std::sqrt(squared));
  return {};
}

}  // namespace

Result<void> add_gemma3_gguf(ModelConfig& config, const formats::GgufFile& gguf) {
  config.activation = ActivationFn::kGeluTanh;
  DP_TRY(const auto theta, gguf.get_number("gemma3.rope.freq_base_swa"));
  set_local_rope(config, theta.value_or(kLocalTheta));
  DP_TRY(const auto pattern, gguf.get_integer("gemma3.attention.sliding_window_pattern"));
  DP_CHECK(set_pattern(config, pattern.value_or(kPattern)));
  DP_TRY(const auto softcap, gguf.get_number("gemma3.final_logit_softcapping"));
  DP_CHECK(refuse_final_softcap(softcap.value_or(0)));
  if (config.n_layers != kLayers27B || config.n_heads == 0) return {};
  return set_scale(config, static_cast<double>(config.hidden_dim) / config.n_heads);
}

Json plain_gemma3_config(const Json& whole) {
  const Json* text = find(whole, "text_config");
  Json json = text && text->is_object() ? *text : whole;
  if (const Json* parameters = find(json, "rope_parameters")) {
    const Json* full = find(*parameters, "full_attention");
    const Json* local = find(*parameters, "sliding_attention");
    const Json* local_theta = local ? find(*local, "rope_theta") : nullptr;
    if (local_theta) json["rope_local_base_freq"] = Json(*local_theta);
    if (full) json["rope_scaling"] = Json(*full);
    if (full || local) json.erase("rope_parameters");
  }
  for (const Default& row : kDefaults) {
    const Json* present = find(json, row.key);
    if (present && !present->is_null()) continue;
    json[row.key] = row.is_count ? Json(static_cast<int64_t>(row.value)) : Json(row.value);
  }
  if (!find(json, "hidden_act")) {
    const Json* activation = find(json, "hidden_activation");
    json["hidden_act"] = activation && !activation->is_null() ? Json(*activation) : Json("gelu_pytorch_tanh");
  }
  return json;
}

Result<void> add_gemma3_huggingface(ModelConfig& config, const formats::Checkpoint& checkpoint,
                                    const Json& json) {
  // The places that published checkpoints of models that also see have had for the text model.
  for (const char* prefix : {"language_model.model.", "model.language_model."}) {
    if (checkpoint.find(std::string(prefix) + "embed_tokens.weight")) config.huggingface_prefix = prefix;
  }
  DP_TRY(const auto local_theta, get_number(json, "rope_local_base_freq"));
  set_local_rope(config, local_theta.value_or(kLocalTheta));
  DP_TRY(const auto pattern, get_integer(json, "sliding_window_pattern"));
  DP_CHECK(set_pattern(config, pattern.value_or(kPattern)));
  const Json* types = find(json, "layer_types");
  if (types && !types->is_null()) DP_CHECK(set_layer_types(config, *types));
  DP_TRY(const auto softcap, get_number(json, "attn_logit_softcapping"));
  config.attention_softcap = static_cast<float>(softcap.value_or(0));
  DP_TRY(const auto final_softcap, get_number(json, "final_logit_softcapping"));
  DP_CHECK(refuse_final_softcap(final_softcap.value_or(0)));
  DP_TRY(const auto scalar, get_number(json, "query_pre_attn_scalar"));
  return set_scale(config, scalar.value_or(config.head_dim));
}

}  // namespace doppler::model
