#include "formats/architectures/huggingface_rope.h"

#include <cmath>
#include <utility>

#include "base/json.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/rope_frequencies.h"

namespace doppler::formats {
namespace {

constexpr double kMostSectionPairs = 1024;

Result<RopeScaling> scaling_from_name(const std::string& name) {
  static constexpr std::pair<const char*, RopeScaling> kNames[] = {
      {"default", RopeScaling::kNone},
      {"dynamic", RopeScaling::kDynamic},
      {"mrope", RopeScaling::kNone},
      {"linear", RopeScaling::kLinear},
      {"llama3", RopeScaling::kLlama3},
      {"yarn", RopeScaling::kYarn},
      {"longrope", RopeScaling::kLongRope},
      {"su", RopeScaling::kLongRope},
      {"proportional", RopeScaling::kProportional},
  };
  for (const auto& [known, scaling] : kNames) {
    if (name == known) return scaling;
  }
  return fail(ErrorKind::kUnsupported,
              "Rope type \"%s\" is not known; known are default, linear, dynamic, llama3, yarn, longrope "
              "and proportional.",
              printable(name).c_str());
}

// transformers 5: {"rope_theta": ...}, or one such object a kind of layer; transformers 4: rope_scaling. Null: none.
const Json* rope_parameters(const Json& json, const char* layer_type) {
  const Json* parameters = find(json, "rope_parameters");
  if (!parameters || parameters->is_null()) return find(json, "rope_scaling");
  const Json* own = find(*parameters, layer_type);
  return own && !own->is_null() ? own : parameters;
}

Result<void> read_sections(const Json& parameters, RopeConfig& rope) {
  const Json* sections = find(parameters, "mrope_section");
  if (!sections || sections->is_null()) return {};
  DP_TRY(const std::vector<double> pairs, get_numbers(parameters, "mrope_section"));
  bool fits = pairs.size() == rope.sections.size();
  for (size_t i = 0; fits && i < pairs.size(); ++i) {
    fits = pairs[i] >= 0 && pairs[i] <= kMostSectionPairs && pairs[i] == std::floor(pairs[i]);
    if (fits) rope.sections[i] = static_cast<uint32_t>(pairs[i]);
  }
  if (!fits) {
    return fail(ErrorKind::kInvalidInput, "Field \"mrope_section\" must hold three numbers of pairs.");
  }
  DP_TRY(const auto interleaved, get_bool(parameters, "mrope_interleaved"));
  rope.interleaved_sections = interleaved.value_or(false);
  return {};
}

// Hunyuan's "dynamic" scaling with an alpha, which does not depend on the length: a larger theta, and nothing else.
Result<RopeConfig> scaled_by_alpha(RopeConfig rope, double alpha, const ModelConfig& config) {
  if (config.head_dim <= 2 || !(alpha > 0)) {
    return fail(ErrorKind::kInvalidInput, "Rope alpha %g of heads of %u is not usable; allowed is above 0.",
                alpha, config.head_dim);
  }
  const double dim = config.head_dim;
  rope.theta *= std::pow(alpha, dim / (dim - 2));
  rope.rotary_dim = config.head_dim;
  return rope;
}

}  // namespace

Result<RopeConfig> read_rope(const Json& json, const ModelConfig& config, RopePairing pairing) {
  RopeConfig rope;
  rope.pairing = pairing;
  DP_TRY(rope.theta, number_or(json, "rope_theta", 10000.0));
  DP_TRY(double rotated_part, number_or(json, "partial_rotary_factor", 1.0));
  const Json* parameters = rope_parameters(json, "full_attention");
  if (parameters && !parameters->is_null()) {
    if (!parameters->is_object())
      return fail(ErrorKind::kInvalidInput, "The rope parameters must be an object.");
    const Json& p = *parameters;
    DP_TRY(auto type, get_string(p, "rope_type"));
    if (!type) {
      DP_TRY(type, get_string(p, "type"));
    }
    DP_TRY(rope.theta, number_or(p, "rope_theta", rope.theta));
    DP_TRY(const double alpha, number_or(p, "alpha", 0));
    if (type == "dynamic" && alpha != 0) return scaled_by_alpha(rope, alpha, config);
    DP_TRY(rope.scaling, scaling_from_name(type.value_or("default")));
    DP_TRY(rotated_part, number_or(p, "partial_rotary_factor", rotated_part));
    DP_TRY(rope.factor, number_or(p, "factor", 1.0));
    // transformers has the model's own number before the scaling's.
    DP_TRY(const double original, number_or(p, "original_max_position_embeddings", config.ctx_len));
    DP_TRY(rope.original_ctx_len, number_or(json, "original_max_position_embeddings", original));
    DP_TRY(rope.low_freq_factor, number_or(p, "low_freq_factor", 1.0));
    DP_TRY(rope.high_freq_factor, number_or(p, "high_freq_factor", 4.0));
    DP_TRY(rope.beta_fast, number_or(p, "beta_fast", 32.0));
    DP_TRY(rope.beta_slow, number_or(p, "beta_slow", 1.0));
    DP_TRY(rope.mscale, number_or(p, "mscale", 0.0));
    DP_TRY(rope.mscale_all_dim, number_or(p, "mscale_all_dim", 0.0));
    DP_TRY(rope.attention_factor, number_or(p, "attention_factor", 0.0));
    DP_TRY(const auto factor, get_number(p, "factor"));
    if (rope.scaling == RopeScaling::kLongRope && factor && rope.attention_factor == 0) {
      rope.attention_factor = longrope_attention_factor(*factor, rope.original_ctx_len);
    }
    DP_TRY(const auto truncate, get_bool(p, "truncate"));
    rope.truncate = truncate.value_or(true);
    DP_TRY(rope.long_factor, get_numbers(p, "long_factor"));
    DP_TRY(rope.short_factor, get_numbers(p, "short_factor"));
    DP_CHECK(read_sections(p, rope));
  }
  if (!(rotated_part > 0 && rotated_part <= 1)) {
    return fail(ErrorKind::kInvalidInput, "Field \"partial_rotary_factor\" is %g; allowed is above 0 to 1.",
                rotated_part);
  }
  if (rope.scaling ==
      RopeScaling::kProportional) {  // heads rotate as a whole, most of their pairs by nothing
    rope.turning_part = std::exchange(rotated_part, 1.0);
  }
  rope.rotary_dim = static_cast<uint32_t>(config.head_dim * rotated_part);
  return rope;
}

Result<QueryScaling> read_query_scaling(const Json& json, const ModelConfig& config) {
  const Json* parameters = rope_parameters(json, "full_attention");
  if (!parameters || !parameters->is_object()) return QueryScaling();
  QueryScaling scaling;
  DP_TRY(scaling.beta, number_or(*parameters, "llama_4_scaling_beta", 0));
  if (scaling.beta != 0) scaling.ctx_len = config.rope.original_ctx_len;
  return scaling;
}

Result<RopeConfig> read_sliding_rope(const Json& json, const RopeConfig& rope, double usual_theta) {
  DP_TRY(double theta, number_or(json, "rope_local_base_freq", usual_theta));
  const Json* parameters = find(json, "rope_parameters");
  if (const Json* own = parameters ? find(*parameters, "sliding_attention") : nullptr) {
    DP_TRY(theta, number_or(*own, "rope_theta", theta));
    DP_TRY(const auto type, get_string(*own, "rope_type"));
    if (type.value_or("default") != "default") {
      return fail(ErrorKind::kUnsupported, "Rope type \"%s\" is not supported for layers that slide.",
                  printable(*type).c_str());
    }
  }
  return RopeConfig{.theta = theta, .rotary_dim = rope.rotary_dim, .pairing = rope.pairing};
}

}  // namespace doppler::formats
