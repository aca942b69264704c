// Writing the keys, and reading them back (gguf_metadata.h).
#include "formats/architectures/gguf_metadata.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "formats/architectures/architecture.h"
#include "formats/architectures/config_sources.h"
#include "formats/architectures/rope_frequencies.h"

namespace doppler::formats {
namespace {

// Every so many layers one sees everything.
uint32_t sliding_pattern(const ModelConfig& config) {
  return static_cast<uint32_t>(std::ranges::find(config.is_sliding, 0) - config.is_sliding.begin()) + 1;
}

Result<void> add_scaling(GgufHeader& header, const std::string& prefix, const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  switch (rope.scaling) {
    case RopeScaling::kNone:
    case RopeScaling::kLlama3:  // a tensor
      return {};
    case RopeScaling::kLinear:
      header.add_string(prefix + "rope.scaling.type", "linear");
      header.add_f32(prefix + "rope.scaling.factor", static_cast<float>(rope.factor));
      return {};
    case RopeScaling::kYarn:
      break;
    case RopeScaling::kLongRope:
      return fail(
          ErrorKind::kUnsupported,
          "Rotary scaling \"longrope\" is not converted; none, \"linear\", \"llama3\" and \"yarn\" are.");
  }
  DP_TRY(const RopeFrequencies frequencies, rope_frequencies(rope, config.ctx_len, config.ctx_len, {}));
  header.add_string(prefix + "rope.scaling.type", "yarn");
  header.add_f32(prefix + "rope.scaling.factor", static_cast<float>(rope.factor));
  header.add_u32(prefix + "rope.scaling.original_context_length",
                 static_cast<uint32_t>(rope.original_ctx_len));
  header.add_f32(prefix + "rope.scaling.yarn_beta_fast", static_cast<float>(rope.beta_fast));
  header.add_f32(prefix + "rope.scaling.yarn_beta_slow", static_cast<float>(rope.beta_slow));
  // GGUF's factor multiplies that of the formula.
  const double usual = rope.factor <= 1 ? 1.0 : 0.1 * std::log(rope.factor) + 1.0;
  const auto factor = static_cast<float>(static_cast<double>(frequencies.attention_factor) / usual);
  if (std::abs(factor - 1) > 1e-6f) header.add_f32(prefix + "rope.scaling.yarn_attn_factor", factor);
  return {};
}

struct Number {
  std::string what;
  double wanted, got;
};

std::vector<Number> numbers_of(const ModelConfig& a, const ModelConfig& b) {
  std::vector<Number> out = {
      {"layer count", static_cast<double>(a.n_layers), static_cast<double>(b.n_layers)},
      {"head count", static_cast<double>(a.n_heads), static_cast<double>(b.n_heads)},
      {"kv head count", static_cast<double>(a.n_kv_heads), static_cast<double>(b.n_kv_heads)},
      {"head dimension", static_cast<double>(a.head_dim), static_cast<double>(b.head_dim)},
      {"hidden dimension", static_cast<double>(a.hidden_dim), static_cast<double>(b.hidden_dim)},
      {"feed-forward dimension", static_cast<double>(a.ffn_dim), static_cast<double>(b.ffn_dim)},
      {"vocabulary size", static_cast<double>(a.vocab_size), static_cast<double>(b.vocab_size)},
      {"context length", static_cast<double>(a.ctx_len), static_cast<double>(b.ctx_len)},
      {"norm epsilon", static_cast<double>(a.norm_eps), static_cast<double>(b.norm_eps)},
      {"attention scale", static_cast<double>(a.attention_scale), static_cast<double>(b.attention_scale)},
      {"attention softcap", static_cast<double>(a.attention_softcap),
       static_cast<double>(b.attention_softcap)},
      {"sliding window", static_cast<double>(a.sliding_window), static_cast<double>(b.sliding_window)},
      {"activation", static_cast<double>(a.activation), static_cast<double>(b.activation)},
      {"tying of embeddings", static_cast<double>(a.tied_embeddings), static_cast<double>(b.tied_embeddings)},
      {"rotary dimension", static_cast<double>(a.rope.rotary_dim), static_cast<double>(b.rope.rotary_dim)},
      {"rope theta of layers that slide", a.local_rope.theta, b.local_rope.theta},
  };
  for (uint32_t layer = 0; layer < a.n_layers; ++layer) {
    out.push_back({format_text("sliding of layer %u", layer), static_cast<double>(is_sliding_layer(a, layer)),
                   static_cast<double>(is_sliding_layer(b, layer))});
  }
  return out;
}

// Whatever the scaling: what it makes of the frequencies.
Result<void> add_rope_numbers(const ModelConfig& a, const ModelConfig& b, std::vector<Number>& out) {
  std::vector<float> divisors;
  if (!b.rope.frequency_divisors.empty()) divisors = rope_divisors(a);
  DP_TRY(const RopeFrequencies wanted, rope_frequencies(a.rope, a.ctx_len, a.ctx_len, {}));
  DP_TRY(const RopeFrequencies got, rope_frequencies(b.rope, b.ctx_len, b.ctx_len, divisors));
  for (size_t i = 0; i < std::min(wanted.inv_freq.size(), got.inv_freq.size()); ++i) {
    out.push_back({format_text("rotary frequency %zu", i), wanted.inv_freq[i], got.inv_freq[i]});
  }
  out.push_back({"rotary attention factor", static_cast<double>(wanted.attention_factor),
                 static_cast<double>(got.attention_factor)});
  return {};
}

Result<ModelConfig> read_back(GgufHeader& header) {
  const std::vector<uint8_t> bytes = header.build();
  DP_TRY(const GgufParse parse, parse_gguf(bytes, header.file_bytes(), "the converted file"));
  if (!parse.file) return fail(ErrorKind::kInvalidInput, "The converted file's header is cut off.");
  const std::span<const GgufTensor> tensors = parse.file->tensors();
  return config_from_gguf(*parse.file, [&](std::string_view name) {
    const auto found = std::ranges::find(tensors, name, &GgufTensor::name);
    return found == tensors.end() ? nullptr : &found->shape;
  });
}

}  // namespace

std::vector<float> rope_divisors(const ModelConfig& config) {
  if (config.rope.scaling != RopeScaling::kLlama3) return {};
  RopeConfig plain = config.rope;
  plain.scaling = RopeScaling::kNone;
  const auto fast = rope_frequencies(plain, config.ctx_len, config.ctx_len, {});
  const auto scaled = rope_frequencies(config.rope, config.ctx_len, config.ctx_len, {});
  if (!fast || !scaled) return {};
  std::vector<float> divisors(fast->inv_freq.size());
  for (size_t i = 0; i < divisors.size(); ++i) {
    divisors[i] = static_cast<float>(fast->inv_freq[i] / scaled->inv_freq[i]);
  }
  return divisors;
}

Result<void> add_config_metadata(GgufHeader& header, const ModelConfig& c, uint32_t file_type) {
  const Architecture& row = architecture_of(c);
  const std::string architecture(row.gguf.architectures[0]), prefix = architecture + ".";
  header.add_string("general.architecture", architecture);
  header.add_u32("general.file_type", file_type);
  header.add_u32("general.quantization_version", kQuantisationVersion);
  header.add_u32(prefix + "block_count", c.n_layers);
  header.add_u32(prefix + "context_length", c.ctx_len);
  header.add_u32(prefix + "embedding_length", c.hidden_dim);
  header.add_u32(prefix + "feed_forward_length", c.ffn_dim);
  header.add_u32(prefix + "attention.head_count", c.n_heads);
  header.add_u32(prefix + "attention.head_count_kv", c.n_kv_heads);
  header.add_u32(prefix + "attention.key_length", c.head_dim);
  header.add_u32(prefix + "attention.value_length", c.head_dim);
  header.add_f32(prefix + "attention.layer_norm_rms_epsilon", c.norm_eps);
  header.add_u32(prefix + "rope.dimension_count", c.rope.rotary_dim);
  header.add_f32(prefix + "rope.freq_base", static_cast<float>(c.rope.theta));
  header.add_u32(prefix + "vocab_size", c.vocab_size);
  if (row.sliding_rope_theta != 0) {
    header.add_f32(prefix + "rope.freq_base_swa", static_cast<float>(c.local_rope.theta));
  }
  DP_CHECK(add_scaling(header, prefix, c));
  if (c.sliding_window == 0 || row.gguf.window == WindowRule::kNone) return {};
  header.add_u32(prefix + "attention.sliding_window", c.sliding_window);
  if (row.gguf.window == WindowRule::kPattern) {
    header.add_u32(prefix + "attention.sliding_window_pattern", sliding_pattern(c));
  }
  return {};
}

Result<void> check_config_kept(const ModelConfig& config, GgufHeader header) {
  DP_TRY(const ModelConfig got, read_back(header));
  std::vector<Number> numbers = numbers_of(config, got);
  DP_CHECK(add_rope_numbers(config, got, numbers));
  constexpr double kTolerance = 1e-6;  // GGUF has f32
  for (const Number& number : numbers) {
    if (std::abs(number.wanted - number.got) <= kTolerance * std::abs(number.wanted)) continue;
    return fail(ErrorKind::kUnsupported,
                "A GGUF file of architecture \"%s\" has no place for the model's %s: %g would be read as %g.",
                got.architecture.c_str(), number.what.c_str(), number.wanted, number.got);
  }
  return {};
}

}  // namespace doppler::formats
