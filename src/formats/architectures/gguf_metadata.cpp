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

constexpr float kNoTurn = 1e30f;  // what llama.cpp divides the frequencies of pairs by that stand still

// The period of the layers that see everything: the last layer of each period does, or the first if the model begins
// with such a layer.
uint32_t sliding_pattern(const ModelConfig& config) {
  const auto begin = config.is_sliding.begin(), end = config.is_sliding.end();
  const bool is_first = begin != end && *begin == 0;
  return static_cast<uint32_t>(std::find(begin + is_first, end, 0) - begin) + !is_first;
}

std::vector<uint8_t> sliding_flags(const ModelConfig& config) {
  std::vector<uint8_t> flags;
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) flags.push_back(is_sliding_layer(config, layer));
  return flags;
}

Result<void> add_scaling(GgufHeader& header, const std::string& prefix, const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  switch (rope.scaling) {
    case RopeScaling::kNone:
    case RopeScaling::kLlama3:  // a tensor
    case RopeScaling::kProportional:
    case RopeScaling::kDynamic:  // no such thing in GGUF: further positions are the reader's own matter
      return {};
    case RopeScaling::kLinear:
      header.add_string(prefix + "rope.scaling.type", "linear");
      header.add_f32(prefix + "rope.scaling.factor", static_cast<float>(rope.factor));
      return {};
    case RopeScaling::kYarn:
    case RopeScaling::kLongRope:
      break;
  }
  DP_TRY(const RopeFrequencies frequencies, rope_frequencies(rope, config.ctx_len, config.ctx_len, {}));
  if (rope.scaling == RopeScaling::kLongRope) {  // and two tensors
    header.add_u32(prefix + "rope.scaling.original_context_length",
                   static_cast<uint32_t>(rope.original_ctx_len));
    header.add_f32(prefix + "rope.scaling.attn_factor", frequencies.attention_factor);
    return {};
  }
  header.add_string(prefix + "rope.scaling.type", "yarn");
  header.add_f32(prefix + "rope.scaling.factor", static_cast<float>(rope.factor));
  header.add_u32(prefix + "rope.scaling.original_context_length",
                 static_cast<uint32_t>(rope.original_ctx_len));
  header.add_f32(prefix + "rope.scaling.yarn_beta_fast", static_cast<float>(rope.beta_fast));
  header.add_f32(prefix + "rope.scaling.yarn_beta_slow", static_cast<float>(rope.beta_slow));
  // For models with latents llama.cpp takes both numbers to be one; elsewhere it takes the first to be 1.
  const float multiplier = architecture_of(config).gguf.yarn_log_multiplier;
  const double mscale = config.mla.kv_rank != 0 ? rope.mscale_all_dim : 1;
  if (multiplier != 0 && rope.mscale == mscale && rope.mscale_all_dim != 0) {
    header.add_f32(prefix + "rope.scaling.yarn_log_multiplier",
                   multiplier * static_cast<float>(rope.mscale_all_dim));
    return {};
  }
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

// The fields that two configs of one model must agree in; rotations are compared by their frequencies.
struct Compared {
  const char* what;
  double (*of)(const ModelConfig& config);
};
template <auto member>
double of(const ModelConfig& config) {
  return static_cast<double>(config.*member);
}
template <auto part, auto member>
double of(const ModelConfig& config) {
  return static_cast<double>(config.*part.*member);
}
template <auto function>
double of_function(const ModelConfig& config) {
  return static_cast<double>(function(config));
}
using M = ModelConfig;
constexpr Compared kCompared[] = {
    {"layer count", of<&M::n_layers>},
    {"count of layers for further tokens", of<&M::next_layers>},
    {"head count", of<&M::n_heads>},
    {"kv head count", of<&M::n_kv_heads>},
    {"head dimension", of<&M::head_dim>},
    {"hidden dimension", of<&M::hidden_dim>},
    {"feed-forward dimension", of<&M::ffn_dim>},
    {"vocabulary size", of<&M::vocab_size>},
    {"context length", of<&M::ctx_len>},
    {"norm epsilon", of<&M::norm_eps>},
    {"attention scale", of<&M::attention_scale>},
    {"attention softcap", of<&M::attention_softcap>},
    {"norm of q and k", of<&M::has_qk_norm>},
    {"attention sinks", of<&M::attention_sinks>},
    {"limit of gates", of<&M::swiglu_limit>},
    {"sliding window", of<&M::sliding_window>},
    {"activation", of<&M::activation>},
    {"tying of embeddings", of<&M::tied_embeddings>},
    {"embedding scale", of<&M::embedding_scale>},
    {"residual scale", of<&M::residual_scale>},
    {"logits scale", of<&M::logits_scale>},
    {"final softcap", of<&M::final_softcap>},
    {"scaling of queries", of<&M::query_scaling, &QueryScaling::beta>},
    {"context length of the scaling of queries", of<&M::query_scaling, &QueryScaling::ctx_len>},
    {"values that are keys", of<&M::values_are_keys>},
    {"dimension of layers' inputs", of<&M::layer_input, &LayerInputConfig::dim>},
    {"vocabulary size of layers' inputs", of<&M::layer_input, &LayerInputConfig::vocab_size>},
    {"rank beside attention", of<&M::laurel_rank>},
    {"bidirectional attention", of<&M::bidirectional>},
    {"count of token types", of<&M::n_token_types>},
    {"pooling", of<&M::pooling, &PoolingConfig::kind>},
    {"count of classes", of<&M::pooling, &PoolingConfig::n_classes>},
    {"matrix before the classes", of<&M::pooling, &PoolingConfig::has_class_dense>},
    {"norm before the classes", of<&M::pooling, &PoolingConfig::has_class_norm>},
    {"norm of embeddings", of<&M::pooling, &PoolingConfig::normalise>},
    {"rotary dimension", of<&M::rope, &RopeConfig::rotary_dim>},
    {"rotary dimension of layers that slide", of<&M::local_rope, &RopeConfig::rotary_dim>},
    {"rope theta of layers that slide", of<&M::local_rope, &RopeConfig::theta>},
    {"expert count", of<&M::moe, &MoeConfig::n_experts>},
    {"count of experts a token", of<&M::moe, &MoeConfig::n_used>},
    {"feed-forward dimension of experts", of<&M::moe, &MoeConfig::expert_dim>},
    {"dimension of experts' rows", of_function<expert_row_dim>},
    {"feed-forward dimension of the shared expert", of<&M::moe, &MoeConfig::shared_dim>},
    {"gate of the shared expert", of<&M::moe, &MoeConfig::shared_gate>},
    {"router score", of<&M::moe, &MoeConfig::score>},
    {"bias of the router score", of<&M::moe, &MoeConfig::has_score_bias>},
    {"norm of the experts' weights", of<&M::moe, &MoeConfig::norm_weights>},
    {"epsilon of the experts' weights", of<&M::moe, &MoeConfig::norm_epsilon>},
    {"scale of the experts' weights", of<&M::moe, &MoeConfig::weight_scale>},
    {"count of expert groups", of<&M::moe, &MoeConfig::n_groups>},
    {"count of expert groups a token", of<&M::moe, &MoeConfig::groups_used>},
    {"score of expert groups", of<&M::moe, &MoeConfig::group_score>},
    {"convolution kernel", of<&M::recurrent, &RecurrentConfig::conv_kernel>},
    {"key head count of recurrent layers", of<&M::recurrent, &RecurrentConfig::n_key_heads>},
    {"value head count of recurrent layers", of<&M::recurrent, &RecurrentConfig::n_value_heads>},
    {"key dimension of recurrent layers", of<&M::recurrent, &RecurrentConfig::key_dim>},
    {"value dimension of recurrent layers", of<&M::recurrent, &RecurrentConfig::value_dim>},
    {"channels of the convolution", of<&M::recurrent, &RecurrentConfig::conv_channels>},
    {"rank of keys and values", of<&M::mla, &MlaConfig::kv_rank>},
    {"rank of queries", of<&M::mla, &MlaConfig::q_rank>},
    {"dimension of keys without rotation", of<&M::mla, &MlaConfig::nope_dim>},
    {"dimension of keys with rotation", of<&M::mla, &MlaConfig::rope_dim>},
    {"dimension of values", of<&M::mla, &MlaConfig::value_dim>},
};

struct ComparedLayer {
  const char* what;
  double (*of)(const ModelConfig& config, uint32_t layer);
};
template <auto function>
double of_layer(const ModelConfig& config, uint32_t layer) {
  return static_cast<double>(function(config, layer));
}
constexpr ComparedLayer kComparedLayers[] = {{"sliding", of_layer<is_sliding_layer>},
                                             {"rotation", of_layer<is_rotated_layer>},
                                             {"mixture of experts", of_layer<is_moe_layer>},
                                             {"recurrence", of_layer<is_recurrent_layer>},
                                             {"mixer", of_layer<has_mixer>},
                                             {"feed-forward layer", of_layer<has_feed_forward>},
                                             {"head dimension", of_layer<head_dim_of>},
                                             {"kv head count", of_layer<kv_heads_of>},
                                             {"feed-forward dimension", of_layer<ffn_dim_of>},
                                             {"gates' deviations", of_layer<gate_deviations_of>},
                                             {"cache's layer", of_layer<cache_layer>}};

std::vector<Number> numbers_of(const ModelConfig& a, const ModelConfig& b) {
  std::vector<Number> out;
  for (const auto& [what, of] : kCompared) out.push_back({what, of(a), of(b)});
  for (size_t i = 0; i < std::max(a.xielu.size(), b.xielu.size()); ++i) {
    const auto number = [i](const std::vector<float>& list) { return i < list.size() ? double{list[i]} : 0; };
    out.push_back({format_text("number %zu of the activations", i), number(a.xielu), number(b.xielu)});
  }
  for (uint32_t layer = 0; layer < a.n_layers + a.next_layers; ++layer) {
    for (const auto& [what, of] : kComparedLayers) {
      out.push_back({format_text("%s of layer %u", what, layer), of(a, layer), of(b, layer)});
    }
  }
  return out;
}

// Whatever the scaling: what it makes of the frequencies.
Result<void> add_rope_numbers(const ModelConfig& a, const ModelConfig& b, std::vector<Number>& out) {
  std::vector<float> divisors;
  if (!b.rope.frequency_divisors.empty()) divisors = rope_divisors(a);
  if (b.rope.scaling == RopeScaling::kLongRope) {
    const std::vector<double>& factors =
        a.ctx_len > a.rope.original_ctx_len ? a.rope.long_factor : a.rope.short_factor;
    divisors.assign(factors.begin(), factors.end());
    out.push_back({"original context length", a.rope.original_ctx_len, b.rope.original_ctx_len});
  }
  DP_TRY(const RopeFrequencies wanted, rope_frequencies(a.rope, a.ctx_len, a.ctx_len, {}));
  DP_TRY(const RopeFrequencies got, rope_frequencies(b.rope, b.ctx_len, b.ctx_len, divisors));
  for (size_t i = 0; i < std::min(wanted.inv_freq.size(), got.inv_freq.size()); ++i) {
    out.push_back({format_text("rotary frequency %zu", i), wanted.inv_freq[i], got.inv_freq[i]});
  }
  for (size_t i = 0; i < a.rope.sections.size(); ++i) {
    out.push_back({format_text("count of pairs of axis %zu", i), static_cast<double>(a.rope.sections[i]),
                   static_cast<double>(b.rope.sections[i])});
  }
  out.push_back({"order of axes", static_cast<double>(a.rope.interleaved_sections),
                 static_cast<double>(b.rope.interleaved_sections)});
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

struct AddField {
  GgufHeader& header;
  std::string key;
  void operator()(uint32_t value) const { header.add_u32(key, value); }
  void operator()(float value) const { header.add_f32(key, value); }
  void operator()(bool value) const { header.add_bool(key, value); }
  void operator()(const std::string& value) const { header.add_string(key, value); }
  void operator()(const std::vector<int32_t>& values) const { header.add_i32s(key, values); }
  void operator()(const std::vector<float>& values) const { header.add_f32s(key, values); }
};

void add_fields(GgufHeader& header, const std::string& prefix, const std::vector<GgufField>& fields) {
  for (const GgufField& field : fields) {
    std::visit(AddField{.header = header, .key = (field.has_prefix ? prefix : "") + std::string(field.key)},
               field.value);
  }
}

// One count where all layers have the same, else a list.
void add_counts(GgufHeader& header, const std::string& key, const ModelConfig& config, bool is_equal,
                uint32_t (*of)(const ModelConfig& config, uint32_t layer)) {
  if (is_equal) return header.add_u32(key, of(config, 0));
  std::vector<int32_t> counts;
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    counts.push_back(static_cast<int32_t>(of(config, layer)));
  }
  header.add_i32s(key, counts);
}

}  // namespace

std::vector<float> rope_divisors(const ModelConfig& config) {
  if (config.rope.scaling != RopeScaling::kLlama3 && config.rope.scaling != RopeScaling::kProportional)
    return {};
  RopeConfig plain = config.rope;
  plain.scaling = RopeScaling::kNone;
  const auto fast = rope_frequencies(plain, config.ctx_len, config.ctx_len, {});
  const auto scaled = rope_frequencies(config.rope, config.ctx_len, config.ctx_len, {});
  if (!fast || !scaled) return {};
  std::vector<float> divisors(fast->inv_freq.size());
  for (size_t i = 0; i < divisors.size(); ++i) {
    divisors[i] =
        scaled->inv_freq[i] == 0 ? kNoTurn : static_cast<float>(fast->inv_freq[i] / scaled->inv_freq[i]);
  }
  return divisors;
}

Result<void> add_config_metadata(GgufHeader& header, const ModelConfig& c, uint32_t file_type) {
  const Architecture& row = architecture_of(c);
  const std::string architecture(gguf_architecture(c)), prefix = architecture + ".";
  header.add_string("general.architecture", architecture);
  header.add_u32("general.file_type", file_type);
  header.add_u32("general.quantization_version", kQuantisationVersion);
  header.add_u32(prefix + "block_count", c.n_layers + c.next_layers);
  if (c.next_layers != 0) header.add_u32(prefix + "nextn_predict_layers", c.next_layers);
  header.add_u32(prefix + "context_length", c.ctx_len);
  header.add_u32(prefix + "embedding_length", c.hidden_dim);
  const bool all_feed = c.shared_ffn_dim == 0 && c.is_feed_forward.empty();
  add_counts(header, prefix + "feed_forward_length", c, all_feed,
             [](const ModelConfig& config, uint32_t layer) {
               return has_feed_forward(config, layer) ? ffn_dim_of(config, layer) : 0;
             });
  header.add_u32(prefix + "attention.head_count", c.n_heads);
  const bool is_equal = !row.gguf.kv_heads_by_layer && c.sliding_kv_heads == 0;
  add_counts(header, prefix + "attention.head_count_kv", c, is_equal,
             [](const ModelConfig& config, uint32_t layer) {
               const bool is_none = architecture_of(config).gguf.kv_heads_by_layer &&
                                    (is_recurrent_layer(config, layer) || !has_mixer(config, layer));
               return is_none ? 0 : kv_heads_of(config, layer);
             });
  header.add_u32(prefix + "attention.key_length", c.head_dim);
  header.add_u32(prefix + "attention.value_length", c.mla.kv_rank != 0 ? c.mla.kv_rank : c.head_dim);
  header.add_f32(prefix + std::string(row.gguf.norm_epsilon), c.norm_eps);
  if (row.rotates) {
    header.add_u32(prefix + "rope.dimension_count", c.rope.rotary_dim);
    header.add_f32(prefix + "rope.freq_base", static_cast<float>(c.rope.theta));
  }
  if (has_axes(c.rope)) {
    std::vector<int32_t> sections(c.rope.sections.begin(), c.rope.sections.end());
    sections.push_back(0);  // llama.cpp has a fourth axis
    header.add_i32s(prefix + "rope.dimension_sections", sections);
  }
  header.add_u32(prefix + "vocab_size", c.vocab_size);
  if (row.sliding_rope_theta != 0) {
    header.add_f32(prefix + "rope.freq_base_swa", static_cast<float>(c.local_rope.theta));
  }
  DP_CHECK(add_scaling(header, prefix, c));
  if (row.gguf.write) add_fields(header, prefix, row.gguf.write(c));
  add_fields(header, prefix, pooling_fields(c));
  if (c.sliding_window == 0 || row.gguf.window == WindowRule::kNone) return {};
  header.add_u32(prefix + "attention.sliding_window", c.sliding_window);
  if (row.gguf.has_lists) {
    header.add_bools(prefix + "attention.sliding_window_pattern", sliding_flags(c));
  } else if (row.gguf.window == WindowRule::kPattern) {
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
