// Required and optional numbers of config.json, each checked for its range (hf_config.h).
#include "formats/convert/hf_config.h"

#include <algorithm>

#include "base/json.h"

namespace doppler::formats {
namespace {

constexpr double kGemmaQueryScalar = 256;   // transformers' default
constexpr int64_t kMaxDimension = 1 << 24;  // far above any model; keeps products of two within 64 bits

// `otherwise` 0: the number must be given.
Result<uint32_t> dimension(const Json& config, const char* key, uint32_t otherwise = 0) {
  DP_TRY(const auto value, get_integer(config, key));
  if (!value && otherwise != 0) return otherwise;
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

// The object with the rope numbers that all layers, or those with full attention, have.
const Json* rope_fields(const Json& config) {
  const Json* rope = find(config, "rope_parameters");
  if (rope && rope->is_object()) {
    const Json* full = find(*rope, "full_attention");
    return full && full->is_object() ? full : rope;
  }
  rope = find(config, "rope_scaling");
  return rope && rope->is_object() ? rope : nullptr;
}

// A positive number; 0 where there is none.
Result<float> optional(const Json& object, const char* key) {
  DP_TRY(const auto value, get_number(object, key));
  return value ? positive(object, key) : Result<float>(0.0f);
}

Result<> read_yarn(const Json& config, const Json& fields, YarnRope& yarn) {
  DP_TRY(yarn.factor, positive(fields, "factor"));
  DP_TRY(const uint32_t whole, dimension(config, "max_position_embeddings"));
  DP_TRY(const uint32_t original, dimension(config, "original_max_position_embeddings", whole));
  DP_TRY(yarn.original_ctx_len, dimension(fields, "original_max_position_embeddings", original));
  DP_TRY(yarn.beta_fast, optional(fields, "beta_fast"));
  DP_TRY(yarn.beta_slow, optional(fields, "beta_slow"));
  DP_TRY(yarn.attention_factor, optional(fields, "attention_factor"));
  for (const char* key : {"mscale", "mscale_all_dim"}) {
    DP_TRY(const auto value, get_number(fields, key));
    if (value.value_or(0) == 0) continue;
    return fail(ErrorKind::kUnsupported, "Rotary scaling \"yarn\" with \"%s\" is not converted.", key);
  }
  DP_TRY(const auto truncate, get_bool(fields, "truncate"));
  if (truncate.value_or(true)) return {};
  return fail(ErrorKind::kUnsupported, "Rotary scaling \"yarn\" without \"truncate\" is not converted.");
}

Result<> read_rope(const Json& config, HfShape& shape) {
  constexpr float kDefaultTheta = 10000.0f, kGemmaTheta = 1e6f, kGemmaLocalTheta = 10000.0f;
  const bool has_local = (shape.family->has & kHasLocalRope) != 0;
  const Json none = Json::object();
  const Json* const found = rope_fields(config);
  const Json& fields = found ? *found : none;
  DP_TRY(const float theta, positive(config, "rope_theta", has_local ? kGemmaTheta : kDefaultTheta));
  DP_TRY(shape.base.rope_theta, positive(fields, "rope_theta", theta));
  if (has_local) {
    DP_TRY(shape.local_rope, positive(config, "rope_local_base_freq", kGemmaLocalTheta));
    const Json* const both = find(config, "rope_parameters");
    const Json* const local = both ? find(*both, "sliding_attention") : nullptr;
    if (local && local->is_object()) {
      DP_TRY(shape.local_rope, positive(*local, "rope_theta", shape.local_rope));
    }
  }
  DP_TRY(auto type, get_string(fields, "rope_type"));
  if (!type) {
    DP_TRY(type, get_string(fields, "type"));
  }
  if (!type || *type == "default") return {};
  if (*type == "linear") {
    DP_TRY(shape.linear_rope, positive(fields, "factor"));
    return {};
  }
  if (*type == "yarn") return read_yarn(config, fields, shape.yarn);
  if (*type != "llama3") {
    return fail(ErrorKind::kUnsupported,
                "Rotary scaling \"%s\" is not converted; none, \"linear\", \"llama3\" and \"yarn\" are.",
                printable(*type).c_str());
  }
  Llama3Rope& rope = shape.base.rope;
  DP_TRY(rope.factor, positive(fields, "factor"));
  DP_TRY(rope.low_freq_factor, positive(fields, "low_freq_factor"));
  DP_TRY(rope.high_freq_factor, positive(fields, "high_freq_factor"));
  DP_TRY(rope.original_ctx_len, dimension(fields, "original_max_position_embeddings"));
  return {};
}

Result<> read_window(const Json& config, HfShape& shape) {
  DP_TRY(const auto window, get_integer(config, "sliding_window"));
  if ((shape.family->has & kHasWindow) == 0 || !window) return {};
  DP_TRY(shape.window, dimension(config, "sliding_window"));
  if ((shape.family->has & kHasLocalRope) == 0) return {};
  constexpr uint32_t kGemmaPattern = 6;
  DP_TRY(shape.window_pattern, dimension(config, "sliding_window_pattern", kGemmaPattern));
  const Json* const types = find(config, "layer_types");
  if (!types || !types->is_array() || types->empty()) return {};
  // The newer spelling: the first layer that sees everything ends the first round.
  const auto slides = [&](size_t layer) { return (*types)[layer] == "sliding_attention"; };
  uint32_t pattern = 1;
  while (pattern <= types->size() && slides(pattern - 1)) ++pattern;
  for (size_t layer = 0; layer < types->size(); ++layer) {
    if (slides(layer) == ((layer + 1) % pattern != 0)) continue;
    return fail(ErrorKind::kUnsupported,
                "\"layer_types\" of config.json repeats in no pattern (layer %zu), and GGUF has only a "
                "number for it.",
                layer);
  }
  shape.window_pattern = pattern;
  return {};
}

// What GGUF's readers compute by a rule, where config.json may say otherwise.
Result<> refuse_other_numbers(const Json& config, const HfShape& shape) {
  const char* const activation = (shape.family->has & kHasSandwichNorms) != 0 ? "gelu_pytorch_tanh" : "silu";
  for (const char* key : {"hidden_act", "hidden_activation"}) {
    DP_TRY(const auto act, get_string(config, key));
    if (act && *act != activation) {
      return fail(ErrorKind::kUnsupported, "\"%s\" of config.json is \"%s\"; only \"%s\" is converted.", key,
                  printable(*act).c_str(), activation);
    }
  }
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    DP_TRY(const auto softcap, get_number(config, key));
    if (softcap.value_or(0) != 0) {
      return fail(ErrorKind::kUnsupported, "Models with \"%s\" (%g) are not converted.", key, *softcap);
    }
  }
  DP_TRY(const auto rotated, get_number(config, "partial_rotary_factor"));
  if (rotated.value_or(1) != 1) {
    return fail(ErrorKind::kUnsupported, "Models with \"partial_rotary_factor\" (%g) are not converted.",
                *rotated);
  }
  if ((shape.family->has & kHasSandwichNorms) == 0) return {};
  constexpr uint32_t kLayers27B = 62;  // the one size whose scale follows from the hidden size
  DP_TRY(const auto scalar, get_number(config, "query_pre_attn_scalar"));
  const LlamaShape& base = shape.base;
  const double wanted =
      base.n_layers == kLayers27B ? static_cast<double>(base.hidden_dim) / base.n_heads : base.head_dim;
  if (scalar.value_or(kGemmaQueryScalar) == wanted) return {};
  return fail(ErrorKind::kUnsupported,
              "\"query_pre_attn_scalar\" of config.json is %g, but readers of GGUF take %g for such a model.",
              scalar.value_or(kGemmaQueryScalar), wanted);
}

}  // namespace

Result<HfShape> read_hf_config(const Json& whole) {
  DP_TRY(const auto type, get_string(whole, "model_type"));
  HfShape shape{};
  DP_TRY(shape.family, find_hf_family(type.value_or("unknown")));
  const HfFamily& family = *shape.family;
  const Json* const nested = find(whole, "text_config");
  shape.nested = nested && nested->is_object();
  const Json& config = shape.nested ? *nested : whole;
  shape.has = family.has;
  const std::pair<const char*, uint32_t> kBiases[] = {{"attention_bias", kHasQkvBiases | kHasOutBias},
                                                      {"mlp_bias", kHasMlpBiases}};
  for (const auto& [key, features] : kBiases) {
    if ((family.has & kMayHaveBiases) == 0) DP_CHECK(refuse_flag(config, key));
    DP_TRY(const auto asked, get_bool(config, key));
    if (asked.value_or(false)) shape.has |= features;
  }
  DP_CHECK(refuse_flag(config, "use_sliding_window"));
  LlamaShape& base = shape.base;
  DP_TRY(base.n_layers, dimension(config, "num_hidden_layers"));
  DP_TRY(base.hidden_dim, dimension(config, "hidden_size"));
  DP_TRY(base.n_heads, dimension(config, "num_attention_heads", family.default_heads));
  DP_TRY(base.n_kv_heads, dimension(config, "num_key_value_heads",
                                    family.default_kv_heads ? family.default_kv_heads : base.n_heads));
  const uint32_t split = std::max(1u, base.hidden_dim / base.n_heads);
  DP_TRY(base.head_dim,
         dimension(config, "head_dim", family.default_head_dim ? family.default_head_dim : split));
  DP_TRY(base.ffn_dim, dimension(config, "intermediate_size"));
  DP_TRY(base.vocab_size, dimension(config, "vocab_size", family.default_vocab));
  DP_TRY(base.ctx_len, dimension(config, "max_position_embeddings", family.default_ctx_len));
  const bool is_gemma = (family.has & kHasSandwichNorms) != 0;  // whose config.json leaves out what is usual
  DP_TRY(base.rms_eps, is_gemma ? positive(config, "rms_norm_eps", 1e-6f) : positive(config, "rms_norm_eps"));
  DP_TRY(const auto tied, get_bool(config, "tie_word_embeddings"));
  base.tied = tied.value_or(is_gemma);
  if (base.head_dim % 2 != 0) {
    return fail(ErrorKind::kUnsupported,
                "\"head_dim\" of config.json is %u, but rotation needs an even number.", base.head_dim);
  }
  DP_CHECK(read_rope(config, shape));
  DP_CHECK(read_window(config, shape));
  DP_CHECK(refuse_other_numbers(config, shape));
  return shape;
}

}  // namespace doppler::formats
