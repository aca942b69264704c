// Required and optional numbers of config.json, each checked for its range (hf_llama_config.h).
#include "formats/convert/hf_llama_config.h"

#include "base/json.h"

namespace doppler::formats {
namespace {

constexpr int64_t kMaxDimension = 1 << 24;  // far above any model; keeps products of two within 64 bits

Result<uint32_t> dimension(const Json& config, const char* key, std::optional<uint32_t> otherwise = {}) {
  DP_TRY(const auto value, get_integer(config, key));
  if (!value && otherwise) return *otherwise;
  if (!value) return fail(ErrorKind::kInvalidInput, "config.json lacks \"%s\".", key);
  if (*value < 1 || *value > kMaxDimension) {
    return fail(ErrorKind::kInvalidInput, "\"%s\" of config.json is %lld; 1 to %lld are allowed.", key,
                static_cast<long long>(*value), static_cast<long long>(kMaxDimension));
  }
  return static_cast<uint32_t>(*value);
}

Result<float> positive(const Json& object, const char* key, std::optional<float> otherwise = {}) {
  DP_TRY(const auto value, get_number(object, key));
  if (!value && otherwise) return *otherwise;
  if (!value || !(*value > 0) || !(*value < 1e30)) {
    return fail(ErrorKind::kInvalidInput, "config.json needs a positive number \"%s\".", key);
  }
  return static_cast<float>(*value);
}

Result<> refuse_flag(const Json& config, const char* key) {
  DP_TRY(const auto value, get_bool(config, key));
  if (!value.value_or(false)) return {};
  return fail(ErrorKind::kUnsupported, "Models with \"%s\" are not converted.", key);
}

Result<> read_rope(const Json& config, LlamaShape& shape) {
  const Json* rope = find(config, "rope_parameters");
  if (!rope || !rope->is_object()) rope = find(config, "rope_scaling");
  const Json none = Json::object();
  const Json& fields = rope && rope->is_object() ? *rope : none;
  DP_TRY(const float theta, positive(config, "rope_theta", 10000.0f));
  DP_TRY(shape.rope_theta, positive(fields, "rope_theta", theta));
  DP_TRY(auto type, get_string(fields, "rope_type"));
  if (!type) {
    DP_TRY(type, get_string(fields, "type"));
  }
  if (!type || *type == "default") return {};
  if (*type != "llama3") {
    return fail(ErrorKind::kUnsupported, "Rotary scaling \"%s\" is not converted; none and \"llama3\" are.",
                printable(*type).c_str());
  }
  DP_TRY(shape.rope.factor, positive(fields, "factor"));
  DP_TRY(shape.rope.low_freq_factor, positive(fields, "low_freq_factor"));
  DP_TRY(shape.rope.high_freq_factor, positive(fields, "high_freq_factor"));
  DP_TRY(shape.rope.original_ctx_len, dimension(fields, "original_max_position_embeddings"));
  return {};
}

}  // namespace

Result<LlamaShape> read_hf_llama_config(const Json& config) {
  DP_TRY(const auto type, get_string(config, "model_type"));
  if (type.value_or("") != "llama") {
    return fail(ErrorKind::kUnsupported,
                "Only models of type \"llama\" are converted to GGUF; this one is \"%s\".",
                printable(type.value_or("unknown")).c_str());
  }
  DP_CHECK(refuse_flag(config, "attention_bias"));
  DP_CHECK(refuse_flag(config, "mlp_bias"));
  LlamaShape shape{};
  DP_TRY(shape.n_layers, dimension(config, "num_hidden_layers"));
  DP_TRY(shape.hidden_dim, dimension(config, "hidden_size"));
  DP_TRY(shape.n_heads, dimension(config, "num_attention_heads"));
  DP_TRY(shape.n_kv_heads, dimension(config, "num_key_value_heads", shape.n_heads));
  DP_TRY(shape.head_dim, dimension(config, "head_dim", std::max(1u, shape.hidden_dim / shape.n_heads)));
  DP_TRY(shape.ffn_dim, dimension(config, "intermediate_size"));
  DP_TRY(shape.vocab_size, dimension(config, "vocab_size"));
  DP_TRY(shape.ctx_len, dimension(config, "max_position_embeddings"));
  DP_TRY(shape.rms_eps, positive(config, "rms_norm_eps"));
  DP_TRY(const auto tied, get_bool(config, "tie_word_embeddings"));
  shape.tied = tied.value_or(false);
  if (shape.head_dim % 2 != 0) {
    return fail(ErrorKind::kUnsupported,
                "\"head_dim\" of config.json is %u, but rotation needs an even number.", shape.head_dim);
  }
  DP_CHECK(read_rope(config, shape));
  return shape;
}

}  // namespace doppler::formats
