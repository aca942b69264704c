// Architecture numbers from a Hugging Face config.json, in both styles: rope_theta + rope_scaling (transformers 4)
// and rope_parameters (transformers 5).
#include "base/json.h"
#include "model/config_sources.h"
#include "model/families/family.h"

namespace doppler::model {
namespace {

Result<std::optional<uint32_t>> get_count(const Json& json, const char* key) {
  DP_TRY(const auto value, get_integer(json, key));
  if (!value) return std::optional<uint32_t>();
  if (*value < 0 || *value > UINT32_MAX) {
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" is %lld; allowed is 0 to 2^32-1.", key,
                static_cast<long long>(*value));
  }
  return std::optional<uint32_t>(static_cast<uint32_t>(*value));
}

Result<uint32_t> required_count(const Json& json, const char* key) {
  DP_TRY(const auto value, get_count(json, key));
  if (!value) return fail(ErrorKind::kInvalidInput, "Field \"%s\" is missing in config.json.", key);
  return *value;
}

Result<double> number_or(const Json& json, const char* key, double otherwise) {
  DP_TRY(const auto value, get_number(json, key));
  return value.value_or(otherwise);
}

Result<std::vector<double>> get_numbers(const Json& json, const char* key) {
  std::vector<double> out;
  const Json* list = find(json, key);
  if (!list || list->is_null()) return out;
  if (!list->is_array())
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be a list of numbers.", key);
  for (const Json& item : *list) {
    if (!item.is_number())
      return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be a list of numbers.", key);
    out.push_back(item.get<double>());
  }
  return out;
}

Result<RopeScaling> scaling_from_name(const std::string& name) {
  static constexpr std::pair<const char*, RopeScaling> kNames[] = {
      {"default", RopeScaling::kNone}, {"linear", RopeScaling::kLinear},     {"llama3", RopeScaling::kLlama3},
      {"yarn", RopeScaling::kYarn},    {"longrope", RopeScaling::kLongRope},
  };
  for (const auto& [known, scaling] : kNames) {
    if (name == known) return scaling;
  }
  return fail(ErrorKind::kUnsupported,
              "Rope type \"%s\" is not known; known are default, linear, llama3, yarn and longrope.",
              printable(name).c_str());
}

Result<RopeConfig> read_rope(const Json& json, const ModelConfig& config) {
  RopeConfig rope;
  DP_TRY(rope.theta, number_or(json, "rope_theta", 10000.0));
  DP_TRY(double rotated_part, number_or(json, "partial_rotary_factor", 1.0));
  const Json* parameters = find(json, "rope_parameters");
  if (!parameters || parameters->is_null()) parameters = find(json, "rope_scaling");
  if (parameters && !parameters->is_null()) {
    if (!parameters->is_object())
      return fail(ErrorKind::kInvalidInput, "The rope parameters must be an object.");
    const Json& p = *parameters;
    DP_TRY(auto type, get_string(p, "rope_type"));
    if (!type) {
      DP_TRY(type, get_string(p, "type"));
    }
    DP_TRY(rope.scaling, scaling_from_name(type.value_or("default")));
    DP_TRY(rope.theta, number_or(p, "rope_theta", rope.theta));
    DP_TRY(rotated_part, number_or(p, "partial_rotary_factor", rotated_part));
    DP_TRY(rope.factor, number_or(p, "factor", 1.0));
    DP_TRY(const double original, number_or(json, "original_max_position_embeddings", config.ctx_len));
    DP_TRY(rope.original_ctx_len, number_or(p, "original_max_position_embeddings", original));
    DP_TRY(rope.low_freq_factor, number_or(p, "low_freq_factor", 1.0));
    DP_TRY(rope.high_freq_factor, number_or(p, "high_freq_factor", 4.0));
    DP_TRY(rope.beta_fast, number_or(p, "beta_fast", 32.0));
    DP_TRY(rope.beta_slow, number_or(p, "beta_slow", 1.0));
    DP_TRY(rope.mscale, number_or(p, "mscale", 0.0));
    DP_TRY(rope.mscale_all_dim, number_or(p, "mscale_all_dim", 0.0));
    DP_TRY(rope.attention_factor, number_or(p, "attention_factor", 0.0));
    DP_TRY(const auto truncate, get_bool(p, "truncate"));
    rope.truncate = truncate.value_or(true);
    DP_TRY(rope.long_factor, get_numbers(p, "long_factor"));
    DP_TRY(rope.short_factor, get_numbers(p, "short_factor"));
  }
  if (!(rotated_part > 0 && rotated_part <= 1)) {
    return fail(ErrorKind::kInvalidInput, "Field \"partial_rotary_factor\" is %g; allowed is above 0 to 1.",
                rotated_part);
  }
  rope.rotary_dim = static_cast<uint32_t>(config.head_dim * rotated_part);
  return rope;
}

Result<ActivationFn> read_activation(const Json& json) {
  DP_TRY(const auto name, get_string(json, "hidden_act"));
  const std::string act = name.value_or("silu");
  if (act == "silu" || act == "swish") return ActivationFn::kSilu;
  if (act == "gelu_pytorch_tanh" || act == "gelu_new") return ActivationFn::kGeluTanh;
  if (act == "gelu") return ActivationFn::kGeluErf;
  return fail(ErrorKind::kUnsupported,
              "Activation \"%s\" is not known; known are silu, gelu, gelu_new and gelu_pytorch_tanh.",
              printable(act).c_str());
}

}  // namespace

Result<ModelConfig> config_from_huggingface(const formats::Checkpoint& checkpoint, const Json& whole) {
  ModelConfig config;
  DP_TRY(const auto model_type, get_string(whole, "model_type"));
  if (!model_type) return fail(ErrorKind::kInvalidInput, "Field \"model_type\" is missing in config.json.");
  config.architecture = *model_type;
  DP_TRY(const Family* family, find_family_huggingface(config.architecture));
  config.family = family->name;
  config.name = checkpoint.name();
  const bool is_gemma3 = family->name == "gemma3";
  const Json json = is_gemma3 ? plain_gemma3_config(whole) : whole;

  DP_TRY(config.n_layers, required_count(json, "num_hidden_layers"));
  DP_TRY(config.n_heads, required_count(json, "num_attention_heads"));
  DP_TRY(const auto n_kv_heads, get_count(json, "num_key_value_heads"));
  config.n_kv_heads = n_kv_heads.value_or(config.n_heads);
  DP_TRY(config.hidden_dim, required_count(json, "hidden_size"));
  DP_TRY(const auto head_dim, get_count(json, "head_dim"));
  config.head_dim = head_dim.value_or(config.n_heads == 0 ? 0 : config.hidden_dim / config.n_heads);
  DP_TRY(config.ffn_dim, required_count(json, "intermediate_size"));
  DP_TRY(config.vocab_size, required_count(json, "vocab_size"));
  DP_TRY(const auto ctx_len, get_count(json, "max_position_embeddings"));
  config.ctx_len = ctx_len.value_or(2048);
  DP_TRY(const double eps, number_or(json, "rms_norm_eps", 1e-6));
  config.norm_eps = static_cast<float>(eps);
  DP_TRY(const auto window, get_count(json, "sliding_window"));
  config.window = family->config_has_window(config.architecture) ? window.value_or(0) : 0;
  DP_TRY(const auto tied, get_bool(json, "tie_word_embeddings"));
  config.tied_embeddings = tied.value_or(false) || checkpoint.find("lm_head.weight") == nullptr;
  DP_TRY(config.activation, read_activation(json));
  DP_TRY(config.rope, read_rope(json, config));
  if (is_gemma3) DP_CHECK(add_gemma3_huggingface(config, checkpoint, json));
  return config;
}

}  // namespace doppler::model
