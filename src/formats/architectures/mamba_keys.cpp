#include "formats/architectures/mamba_keys.h"

#include "base/json.h"
#include "base/text.h"
#include "formats/architectures/gguf_keys.h"

namespace doppler::formats {

Result<void> finish_mamba(ModelConfig& config) {
  RecurrentConfig& c = config.recurrent;
  // Bounds are those of the kernels, and of heads several times the largest published.
  const bool fits = c.n_key_heads != 0 && c.n_value_heads % c.n_key_heads == 0 && c.n_value_heads >= 1 &&
                    c.n_value_heads <= 1024 && c.key_dim >= 1 && c.key_dim <= 512 && c.value_dim >= 1 &&
                    c.value_dim <= 512 && c.conv_kernel >= 2 && c.conv_kernel <= 16;
  if (!fits) {
    return fail(ErrorKind::kInvalidInput,
                "Mamba 2 of %u heads of %u in %u groups, with %u states and a convolution over %u positions; "
                "allowed are whole multiples up to 1024 heads of 1 to 512, 1 to 512 states, and 2 to 16 "
                "positions.",
                c.n_value_heads, c.value_dim, c.n_key_heads, c.key_dim, c.conv_kernel);
  }
  c.conv_channels = 2 * c.n_key_heads * c.key_dim + c.n_value_heads * c.value_dim;
  return {};
}

Result<void> refuse_step_limit(const Json& json) {
  constexpr double kEndless = 1e30;  // no step is as long
  const Json* limit = find(json, "time_step_limit");
  if (!limit || limit->is_null()) return {};
  const auto number = [&](size_t i) {
    const Json& value = (*limit)[i];
    const Json* named = find(value, "__float__");  // as transformers 5 writes infinity
    if (named && *named == "Infinity") return kEndless;
    return value.is_number() ? value.get<double>() : -1;
  };
  if (limit->is_array() && limit->size() == 2 && number(0) == 0 && number(1) >= kEndless) return {};
  return fail(ErrorKind::kUnsupported, "Field \"time_step_limit\" is %s; supported is none: [0, Infinity].",
              printable(to_text(*limit)).c_str());
}

Result<void> read_gguf_mamba(const GgufKeys& keys, ModelConfig& config) {
  RecurrentConfig& c = config.recurrent;
  DP_TRY(c.conv_kernel, keys.required("ssm.conv_kernel"));
  DP_TRY(c.key_dim, keys.required("ssm.state_size"));
  DP_TRY(c.n_key_heads, keys.required("ssm.group_count"));
  DP_TRY(c.n_value_heads, keys.required("ssm.time_step_rank"));
  DP_TRY(const uint32_t inner, keys.required("ssm.inner_size"));
  if (c.n_value_heads == 0 || inner % c.n_value_heads != 0) {
    return fail(ErrorKind::kInvalidInput, "Key \"%s.ssm.inner_size\" is %u, no multiple of %u heads.",
                config.architecture.c_str(), inner, c.n_value_heads);
  }
  c.value_dim = inner / c.n_value_heads;
  return finish_mamba(config);
}

std::vector<GgufField> gguf_mamba_fields(const ModelConfig& config) {
  const RecurrentConfig& c = config.recurrent;
  return {{"ssm.conv_kernel", c.conv_kernel},
          {"ssm.state_size", c.key_dim},
          {"ssm.group_count", c.n_key_heads},
          {"ssm.time_step_rank", c.n_value_heads},
          {"ssm.inner_size", c.n_value_heads * c.value_dim}};
}

}  // namespace doppler::formats
