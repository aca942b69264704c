// Architecture numbers from GGUF metadata; keys as in the GGUF specification ("llama.block_count").
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "formats/architectures/architecture.h"
#include "formats/architectures/config_sources.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/next_layer.h"
#include "formats/architectures/rope_frequencies.h"
#include "formats/architectures/rows.h"
#include "formats/projector/projector.h"

namespace doppler::formats {
namespace {

// Yarn's further numbers, with llama.cpp's meaning: the file's attention factors multiply the one of the
// formula.
Result<void> read_yarn(const GgufKeys& keys, RopeConfig& rope) {
  DP_TRY(rope.beta_fast, keys.number("rope.scaling.yarn_beta_fast", rope.beta_fast));
  DP_TRY(rope.beta_slow, keys.number("rope.scaling.yarn_beta_slow", rope.beta_slow));
  DP_TRY(rope.mscale_all_dim, keys.number("rope.scaling.yarn_log_multiplier", 0));
  if (rope.mscale_all_dim != 0) rope.mscale = 1;
  DP_TRY(const double factor, keys.number("rope.scaling.attn_factor", 1.0));
  DP_TRY(const double yarn_factor, keys.number("rope.scaling.yarn_attn_factor", 1.0));
  if (factor * yarn_factor != 1.0) {
    rope.attention_factor =
        factor * yarn_factor * (rope.factor <= 1 ? 1.0 : 0.1 * std::log(rope.factor) + 1.0);
  }
  return {};
}

Result<RopeConfig> read_rope(const ShapeLookup& shape_of, const GgufKeys& keys, const ModelConfig& config,
                             RopePairing pairing) {
  RopeConfig rope;
  rope.pairing = pairing;
  DP_TRY(rope.theta, keys.number("rope.freq_base", 10000.0));
  DP_TRY(const auto rotary_dim, keys.count("rope.dimension_count"));
  rope.rotary_dim = rotary_dim.value_or(config.head_dim);
  DP_TRY(const std::string scaling, keys.text("rope.scaling.type"));
  DP_TRY(const double linear_scale, keys.number("rope.scale_linear", 1.0));
  DP_TRY(rope.factor, keys.number("rope.scaling.factor", linear_scale));
  DP_TRY(rope.original_ctx_len, keys.number("rope.scaling.original_context_length", config.ctx_len));
  if (shape_of(kLongFactors) && shape_of(kShortFactors)) {
    rope.scaling = RopeScaling::kLongRope;
    rope.frequency_divisors = kLongFactors;
    DP_TRY(rope.attention_factor, keys.number("rope.scaling.attn_factor", 1.0));
    return rope;
  }
  if (scaling == "yarn") {
    rope.scaling = RopeScaling::kYarn;
    DP_CHECK(read_yarn(keys, rope));
  } else if (scaling == "linear" || (scaling.empty() && rope.factor != 1.0)) {
    rope.scaling = RopeScaling::kLinear;
  } else if (!scaling.empty() && scaling != "none") {
    return fail(ErrorKind::kUnsupported, "Rope scaling \"%s\" is not known; known are none, linear and yarn.",
                printable(scaling).c_str());
  }
  if (shape_of("rope_freqs.weight")) rope.frequency_divisors = "rope_freqs.weight";
  return rope;
}

// Pairs of each axis: three of the list's numbers; the fourth is 0.
Result<void> read_sections(const GgufKeys& keys, const GgufRow& row, RopeConfig& rope) {
  DP_TRY(const std::vector<double> pairs, keys.numbers("rope.dimension_sections"));
  if (pairs.empty()) return {};
  double all = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const bool fits =
        pairs[i] >= 0 && pairs[i] == std::floor(pairs[i]) && (i < rope.sections.size() || pairs[i] == 0);
    all = fits ? all + pairs[i] : INFINITY;
    if (all <= rope.rotary_dim / 2 && i < rope.sections.size())
      rope.sections[i] = static_cast<uint32_t>(pairs[i]);
  }
  rope.interleaved_sections = row.interleaved_sections;
  rope.pairing = row.pairing_of(rope);
  if (pairs.size() >= rope.sections.size() && all <= rope.rotary_dim / 2) return {};
  return fail(ErrorKind::kInvalidInput,
              "Key \"rope.dimension_sections\" does not hold the pairs of three axes, at most %u together.",
              rope.rotary_dim / 2);
}

Result<void> read_window(const GgufKeys& keys, const Architecture& row, ModelConfig& config) {
  DP_TRY(const auto window, keys.count("attention.sliding_window"));
  config.sliding_window = window.value_or(0);
  if (row.gguf.window == WindowRule::kNone && config.sliding_window != 0) {
    return fail(ErrorKind::kUnsupported,
                "A sliding window (%u) is not supported in GGUF files of architecture \"%s\".",
                config.sliding_window, config.architecture.c_str());
  }
  if (row.gguf.window != WindowRule::kPattern) return {};
  std::vector<uint8_t> flags = keys.flags("attention.sliding_window_pattern");
  if (!flags.empty() && config.sliding_window != 0) {
    if (flags.size() != config.n_layers) {
      return fail(ErrorKind::kInvalidInput,
                  "Key \"%s.attention.sliding_window_pattern\" has %zu entries; a model of %u layers has one "
                  "a layer.",
                  config.architecture.c_str(), flags.size(), config.n_layers);
    }
    config.is_sliding = std::move(flags);
    return {};
  }
  DP_TRY(const auto pattern, keys.count("attention.sliding_window_pattern"));
  return set_sliding_pattern(config, pattern.value_or(row.window_pattern));
}

// A list of counts by layer, which is the same in all layers that have any.
struct CountByLayer {
  uint32_t count = 0;
  std::vector<uint8_t> is_none;
};
Result<CountByLayer> read_count_by_layer(const GgufKeys& keys, const char* key, const ModelConfig& config) {
  DP_TRY(const std::vector<double> counts, keys.numbers(key));
  if (counts.size() != config.n_layers || counts.empty()) {
    return fail(ErrorKind::kInvalidInput, "Key \"%s.%s\" has %zu entries; the model has %u layers.",
                config.architecture.c_str(), key, counts.size(), config.n_layers);
  }
  const double most = *std::ranges::max_element(counts);
  CountByLayer out;
  for (const double count : counts) {
    if (count != 0 && count != most) {
      return fail(ErrorKind::kUnsupported, "Key \"%s.%s\" has %g beside %g; allowed is one count, and 0.",
                  config.architecture.c_str(), key, count, most);
    }
    out.is_none.push_back(count == 0);
  }
  constexpr double kMost = 1 << 30;  // what is too many says check_config()
  out.count = static_cast<uint32_t>(std::clamp(most, 0.0, kMost));
  return out;
}

Result<void> read_kv_heads(const GgufKeys& keys, const GgufRow& row, ModelConfig& config) {
  constexpr const char* kKey = "attention.head_count_kv";
  if (row.has_lists) {
    DP_TRY(const std::vector<uint32_t> counts, keys.counts(kKey));
    config.n_kv_heads = counts.empty() ? config.n_heads : counts.back();
    return {};
  }
  if (!row.kv_heads_by_layer) {
    DP_TRY(const auto count, keys.count(kKey));
    config.n_kv_heads = count.value_or(config.n_heads);
    return {};
  }
  DP_TRY(CountByLayer heads, read_count_by_layer(keys, kKey, config));
  config.n_kv_heads = heads.count;
  config.recurrent.is_recurrent = std::move(heads.is_none);
  return {};
}

// Files of models whose layers all have experts may give only the experts' width.
Result<void> read_ffn_dim(const GgufKeys& keys, const GgufRow& row, ModelConfig& config) {
  if (row.ffn_by_layer) {
    DP_TRY(const CountByLayer dims, read_count_by_layer(keys, "feed_forward_length", config));
    config.ffn_dim = dims.count;
    for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
      const bool feeds = dims.is_none[layer] == 0;
      config.is_feed_forward.push_back(feeds);
      if (feeds) config.recurrent.is_recurrent[layer] = 0;
    }
    return {};
  }
  if (row.has_lists) {
    DP_TRY(const std::vector<uint32_t> dims, keys.counts("feed_forward_length"));
    config.ffn_dim = dims.empty() ? 0 : dims.front();
    return {};
  }
  DP_TRY(const auto expert_dim, keys.count("expert_feed_forward_length"));
  DP_TRY(const auto dim, keys.count("feed_forward_length"));
  if (!dim && expert_dim) {
    config.ffn_dim = *expert_dim;
    return {};
  }
  DP_TRY(config.ffn_dim, keys.required("feed_forward_length"));
  return {};
}

// A key that changes the maths, unless it holds this number.
struct Refused {
  std::string_view key;
  double neutral;
};
constexpr Refused kRefusedGguf[] = {
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
    {"router_logit_softcapping", 0},
    {"embedding_scale", 1},
    {"residual_scale", 1},
    {"logit_scale", 1},
    {"attention.scale", 0},
    {"attention.temperature_scale", 0},
    {"attention.clamp_kqv", 0},
    {"attention.max_alibi_bias", 0},
    {"attention.output_scale", 1},
    {"attention.indexer.top_k", 0},
    {"attention.q_lora_rank", 0},
    {"attention.kv_lora_rank", 0},
    {"attention.shared_kv_layers", 0},
    {"embedding_length_per_layer_input", 0},
    {"expert_count", 0},
    {"moe_latent_size", 0},
    {"shortconv.l_cache", 0},
    {"ssm.conv_kernel", 0},
    {"ssm.state_size", 0},
};

Result<void> refuse_others(const GgufKeys& keys, const GgufRow& row, const ModelConfig& config) {
  for (const Refused& refused : kRefusedGguf) {
    if (std::ranges::find(row.keys, refused.key) != row.keys.end()) continue;
    const std::string key(refused.key);
    DP_TRY(const double number, keys.number(key.c_str(), refused.neutral));
    if (number == refused.neutral) continue;
    return fail(ErrorKind::kUnsupported, "Key \"%s.%s\" (%g) is not supported.", config.architecture.c_str(),
                key.c_str(), number);
  }
  return {};
}

// Such layers have no tensor of values.
void find_values_that_are_keys(const ShapeLookup& shape_of, ModelConfig& config) {
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    const std::string name = format_text("blk.%u.attn_v.weight", layer);
    if (has_cache(config, layer) && !shape_of(name)) config.values_are_keys = true;
  }
}

}  // namespace

Result<void> leave_out_guessing_layers(const GgufKeys& keys, ModelConfig& config) {
  DP_TRY(const auto guessing, keys.count("nextn_predict_layers"));
  if (guessing.value_or(0) >= config.n_layers) {
    return fail(ErrorKind::kInvalidInput, "Key \"%s.nextn_predict_layers\" is %u; the model has %u layers.",
                config.architecture.c_str(), *guessing, config.n_layers);
  }
  config.n_layers -= guessing.value_or(0);
  if (guessing == 1u && architecture_of(config).has_next_layer) config.next_layers = 1;
  return {};
}

Result<ModelConfig> config_from_gguf(const GgufFile& gguf, const ShapeLookup& shape_of) {
  ModelConfig config;
  config.gguf_names = true;
  DP_TRY(const auto architecture, gguf.get_string("general.architecture"));
  if (!architecture) return fail(ErrorKind::kInvalidInput, "Key \"general.architecture\" is missing.");
  if (*architecture == kProjectorArchitecture) {
    return fail(
        ErrorKind::kInvalidInput,
        "This is the vision tower of a model; name the model's own file, and this one with --mmproj.");
  }
  config.architecture = *architecture;
  DP_TRY(const Architecture* row, find_architecture_gguf(config.architecture));
  config.family = row->family;
  config.activation = row->activation;
  DP_TRY(const auto name, gguf.get_string("general.name"));
  config.name = name.value_or("");
  DP_TRY(const auto synthetic, gguf.get_bool("general.synthetic"));
  config.synthetic = synthetic.value_or(false);

  const GgufKeys keys(gguf, config.architecture + ".");
  DP_TRY(config.n_layers, keys.required("block_count"));
  DP_TRY(config.n_heads, keys.required("attention.head_count"));
  DP_CHECK(read_kv_heads(keys, row->gguf, config));
  DP_TRY(config.hidden_dim, keys.required("embedding_length"));
  DP_CHECK(read_ffn_dim(keys, row->gguf, config));
  DP_TRY(config.ctx_len, keys.required("context_length"));
  config.bidirectional = row->bidirectional;
  DP_TRY(const double eps, keys.number(std::string(row->gguf.norm_epsilon).c_str(), 1e-5));
  config.norm_eps = static_cast<float>(eps);
  DP_TRY(const auto key_length, keys.count("attention.key_length"));
  config.head_dim = key_length.value_or(config.n_heads == 0 ? 0 : config.hidden_dim / config.n_heads);
  DP_CHECK(refuse_others(keys, row->gguf, config));
  DP_CHECK(read_window(keys, *row, config));
  DP_TRY(config.rope, read_rope(shape_of, keys, config, row->gguf.pairing.value));
  DP_CHECK(read_sections(keys, row->gguf, config.rope));
  if (row->sliding_rope_theta != 0) {
    DP_TRY(const double theta, keys.number("rope.freq_base_swa", row->sliding_rope_theta));
    config.local_rope = {
        .theta = theta, .rotary_dim = config.rope.rotary_dim, .pairing = config.rope.pairing};
  }
  if (!row->rotates) {
    config.rope = {.rotary_dim = 0};
    const std::vector<uint64_t>* types = shape_of("token_types.weight");
    const bool is_table = types && !types->empty() && types->size() <= 2;
    config.n_token_types = !is_table ? 0
                           : types->size() == 1
                               ? 1
                               : static_cast<uint32_t>(std::min<uint64_t>((*types)[0], UINT32_MAX));
  }
  if (row->gguf.optional_qk_norm) config.has_qk_norm = shape_of("blk.0.attn_q_norm.weight") != nullptr;
  const std::vector<uint64_t>* embedding = shape_of("token_embd.weight");
  if (!embedding || embedding->size() != 2) {
    return fail(ErrorKind::kInvalidInput, "Tensor \"token_embd.weight\" is missing or no matrix.");
  }
  config.vocab_size = static_cast<uint32_t>(std::min<uint64_t>((*embedding)[0], UINT32_MAX));
  config.tied_embeddings = shape_of("output.weight") == nullptr;
  DP_CHECK(check_config(config));
  config.attention_scale = row->gguf.attention_scale(config);
  const auto* table = shape_of("per_layer_token_embd.weight");
  if (table && !table->empty()) config.layer_input.vocab_size = static_cast<uint32_t>((*table)[0]);
  const auto* laurel = shape_of("blk.0.laurel_l.weight");
  if (laurel && !laurel->empty()) config.laurel_rank = static_cast<uint32_t>((*laurel)[0]);
  if (row->gguf.read) DP_CHECK(row->gguf.read(keys, config));
  find_next_layer(shape_of, config);
  if (row->gguf.has_lists) find_values_that_are_keys(shape_of, config);
  DP_CHECK(read_pooling(keys, shape_of, config));
  DP_CHECK(check_scales(config));
  return config;
}

}  // namespace doppler::formats
