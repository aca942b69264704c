// Architecture numbers from GGUF metadata; keys as in the GGUF specification ("llama.block_count").
#include <cmath>

#include "model/config_sources.h"
#include "model/families/family.h"

namespace doppler::model {
namespace {

// Reads "<architecture>.<key>" with range checks; the first fault is kept and reported by the caller.
class Keys {
 public:
  Keys(const formats::GgufFile& gguf, std::string prefix) : gguf_(gguf), prefix_(std::move(prefix)) {}

  Result<std::optional<uint32_t>> count(const char* key) const {
    DP_TRY(const auto value, gguf_.get_integer(prefix_ + key));
    if (!value) return std::optional<uint32_t>();
    if (*value < 0 || *value > UINT32_MAX) {
      return fail(ErrorKind::kInvalidInput, "Key \"%s%s\" is %lld; allowed is 0 to 2^32-1.", prefix_.c_str(),
                  key, static_cast<long long>(*value));
    }
    return std::optional<uint32_t>(static_cast<uint32_t>(*value));
  }
  Result<uint32_t> required(const char* key) const {
    DP_TRY(const auto value, count(key));
    if (!value) return fail(ErrorKind::kInvalidInput, "Key \"%s%s\" is missing.", prefix_.c_str(), key);
    return *value;
  }
  Result<double> number(const char* key, double otherwise) const {
    DP_TRY(const auto value, gguf_.get_number(prefix_ + key));
    return value.value_or(otherwise);
  }
  Result<std::string> text(const char* key) const {
    DP_TRY(const auto value, gguf_.get_string(prefix_ + key));
    return value.value_or(std::string());
  }

 private:
  const formats::GgufFile& gguf_;
  std::string prefix_;
};

// Yarn's further numbers, with llama.cpp's meaning: the file's attention factors multiply the one of the
// formula.
Result<void> read_yarn(const Keys& keys, RopeConfig& rope) {
  DP_TRY(rope.beta_fast, keys.number("rope.scaling.yarn_beta_fast", rope.beta_fast));
  DP_TRY(rope.beta_slow, keys.number("rope.scaling.yarn_beta_slow", rope.beta_slow));
  DP_TRY(const double factor, keys.number("rope.scaling.attn_factor", 1.0));
  DP_TRY(const double yarn_factor, keys.number("rope.scaling.yarn_attn_factor", 1.0));
  if (factor * yarn_factor != 1.0) {
    rope.attention_factor =
        factor * yarn_factor * (rope.factor <= 1 ? 1.0 : 0.1 * std::log(rope.factor) + 1.0);
  }
  return {};
}

Result<RopeConfig> read_rope(const formats::Checkpoint& checkpoint, const Keys& keys,
                             const ModelConfig& config) {
  RopeConfig rope;
  rope.interleaved = family_of(config).gguf_turns_neighbours;
  DP_TRY(rope.theta, keys.number("rope.freq_base", 10000.0));
  DP_TRY(const auto rotary_dim, keys.count("rope.dimension_count"));
  rope.rotary_dim = rotary_dim.value_or(config.head_dim);
  DP_TRY(const std::string scaling, keys.text("rope.scaling.type"));
  DP_TRY(const double linear_scale, keys.number("rope.scale_linear", 1.0));
  DP_TRY(rope.factor, keys.number("rope.scaling.factor", linear_scale));
  DP_TRY(rope.original_ctx_len, keys.number("rope.scaling.original_context_length", config.ctx_len));
  if (scaling == "yarn") {
    rope.scaling = RopeScaling::kYarn;
    DP_CHECK(read_yarn(keys, rope));
  } else if (scaling == "linear" || (scaling.empty() && rope.factor != 1.0)) {
    rope.scaling = RopeScaling::kLinear;
  } else if (!scaling.empty() && scaling != "none") {
    return fail(ErrorKind::kUnsupported, "Rope scaling \"%s\" is not known; known are none, linear and yarn.",
                printable(scaling).c_str());
  }
  if (checkpoint.find("rope_freqs.weight")) rope.frequency_divisors = "rope_freqs.weight";
  return rope;
}

}  // namespace

Result<ModelConfig> config_from_gguf(const formats::Checkpoint& checkpoint, const formats::GgufFile& gguf) {
  ModelConfig config;
  config.gguf_names = true;
  DP_TRY(const auto architecture, gguf.get_string("general.architecture"));
  if (!architecture) return fail(ErrorKind::kInvalidInput, "Key \"general.architecture\" is missing.");
  config.architecture = *architecture;
  DP_TRY(const Family* family, find_family_gguf(config.architecture));
  config.family = family->name;
  DP_TRY(const auto name, gguf.get_string("general.name"));
  config.name = name.value_or("");
  DP_TRY(const auto synthetic, gguf.get_bool("general.synthetic"));
  config.synthetic = synthetic.value_or(false);

  const Keys keys(gguf, config.architecture + ".");
  DP_TRY(config.n_layers, keys.required("block_count"));
  DP_TRY(config.n_heads, keys.required("attention.head_count"));
  DP_TRY(const auto n_kv_heads, keys.count("attention.head_count_kv"));
  config.n_kv_heads = n_kv_heads.value_or(config.n_heads);
  DP_TRY(config.hidden_dim, keys.required("embedding_length"));
  DP_TRY(config.ffn_dim, keys.required("feed_forward_length"));
  DP_TRY(config.ctx_len, keys.required("context_length"));
  DP_TRY(const double eps, keys.number("attention.layer_norm_rms_epsilon", 1e-5));
  config.norm_eps = static_cast<float>(eps);
  DP_TRY(const auto key_length, keys.count("attention.key_length"));
  config.head_dim = key_length.value_or(config.n_heads == 0 ? 0 : config.hidden_dim / config.n_heads);
  DP_TRY(const auto window, keys.count("attention.sliding_window"));
  config.window = window.value_or(0);
  DP_TRY(const auto experts, keys.count("expert_count"));
  if (experts.value_or(0) != 0) {
    return fail(ErrorKind::kUnsupported,
                "Architecture \"%s\" with %u experts is not supported yet; dense models are.",
                config.architecture.c_str(), *experts);
  }
  DP_TRY(config.rope, read_rope(checkpoint, keys, config));

  const formats::TensorInfo* embedding = checkpoint.find("token_embd.weight");
  if (!embedding || embedding->shape.size() != 2) {
    return fail(ErrorKind::kInvalidInput, "Tensor \"token_embd.weight\" is missing or no matrix.");
  }
  config.vocab_size = static_cast<uint32_t>(std::min<uint64_t>(embedding->shape[0], UINT32_MAX));
  config.tied_embeddings = checkpoint.find("output.weight") == nullptr;
  if (family->add_gguf) DP_CHECK(family->add_gguf(config, gguf));
  return config;
}

}  // namespace doppler::model
