// Architecture numbers from a Hugging Face config.json, in both styles: rope_theta + rope_scaling (transformers 4)
// and rope_parameters (transformers 5).
#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "formats/architectures/architecture.h"
#include "formats/architectures/config_sources.h"
#include "formats/architectures/huggingface_rope.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/mla_keys.h"
#include "formats/architectures/refused_fields.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace {

Result<ActivationFn> read_activation(const Json& json, const HuggingFaceRow& row, ActivationFn usual) {
  DP_TRY(const auto name, get_string(json, std::string(row.activation).c_str()));
  if (!name) return usual;
  const std::string& act = *name;
  if (act == "silu" || act == "swish") return ActivationFn::kSilu;
  if (act == "gelu_pytorch_tanh" || act == "gelu_new") return ActivationFn::kGeluTanh;
  if (act == "gelu") return ActivationFn::kGeluErf;
  return fail(ErrorKind::kUnsupported,
              "Activation \"%s\" is not known; known are silu, gelu, gelu_new and gelu_pytorch_tanh.",
              printable(act).c_str());
}

// transformers 5 writes "mamba" as "linear_attention" and "attention" as "full_attention".
bool is_recurrent_type(const HuggingFaceRow& row, const Json& type) {
  if (row.recurrent_type.empty()) return false;
  return type == row.recurrent_type || (row.recurrent_type == "mamba" && type == "linear_attention");
}
bool is_attention_type(const HuggingFaceRow& row, const Json& type) {
  return type == "full_attention" || (row.recurrent_type == "mamba" && type == "attention");
}

std::string known_layer_types(const HuggingFaceRow& row) {
  std::string known = "\"sliding_attention\" and ";
  if (!row.recurrent_type.empty()) known = "\"" + std::string(row.recurrent_type) + "\", " + known;
  return known;
}

Result<void> set_layer_types(ModelConfig& config, const HuggingFaceRow& row, WindowRule rule,
                             const Json& types) {
  if (!types.is_array() || types.size() != config.n_layers) {
    return fail(ErrorKind::kInvalidInput, "Field \"layer_types\" must be a list of one name a layer (%u).",
                config.n_layers);
  }
  std::vector<uint8_t> is_sliding, is_recurrent;
  for (const Json& type : types) {
    const bool slides = type == "sliding_attention";
    const bool recurs = is_recurrent_type(row, type);
    if (!slides && !recurs && !is_attention_type(row, type)) {
      return fail(ErrorKind::kUnsupported, "Layer type %s is not known; known are %s\"full_attention\".",
                  printable(to_text(type)).c_str(), known_layer_types(row).c_str());
    }
    is_sliding.push_back(slides);
    is_recurrent.push_back(recurs);
  }
  if (!row.recurrent_type.empty()) config.recurrent.is_recurrent = std::move(is_recurrent);
  const auto n_sliding = std::ranges::count(is_sliding, 1);
  if (n_sliding != 0 && config.sliding_window == 0) {
    return fail(ErrorKind::kUnsupported,
                "Field \"layer_types\" has layers that slide, but the model has no sliding window.");
  }
  if (rule != WindowRule::kAllLayers) {
    config.is_sliding = std::move(is_sliding);
  } else if (n_sliding == 0) {
    config.sliding_window = 0;
  } else if (n_sliding != std::ssize(types)) {
    return fail(ErrorKind::kUnsupported,
                "Field \"layer_types\" has two kinds; models of type \"%s\" have one for all layers.",
                config.architecture.c_str());
  }
  return {};
}

// A letter a layer, again and again: L slides ("LLLG").
void set_sliding_letters(ModelConfig& config, const std::string& letters) {
  if (config.sliding_window == 0 || letters.empty()) return;
  config.is_sliding.resize(config.n_layers);
  for (size_t i = 0; i < config.is_sliding.size(); ++i)
    config.is_sliding[i] = letters[i % letters.size()] == 'L';
}

Result<void> read_window(const Json& json, const Architecture& row, WindowRule rule, ModelConfig& config) {
  DP_TRY(const auto window, get_count(json, std::string(row.huggingface.window).c_str()));
  DP_TRY(const auto used, get_bool(json, "use_sliding_window"));
  if (rule == WindowRule::kUpperLayers) {
    if (used.value_or(false)) config.sliding_window = window.value_or(0);
    DP_TRY(const auto full, get_count(json, "max_window_layers"));
    if (config.sliding_window != 0) {
      config.is_sliding.resize(config.n_layers);
      for (size_t i = 0; i < config.is_sliding.size(); ++i) config.is_sliding[i] = i >= full.value_or(0);
    }
  } else if (used.value_or(false)) {
    return fail(ErrorKind::kUnsupported,
                "Field \"use_sliding_window\" is not supported in models of type \"%s\".",
                config.architecture.c_str());
  } else if (rule != WindowRule::kNone) {
    config.sliding_window = window.value_or(0);
  }
  const Json* letters = find(json, "sliding_window_pattern");
  if (rule == WindowRule::kPattern && letters && letters->is_string()) {
    DP_TRY(const auto text, get_string(json, "sliding_window_pattern"));
    set_sliding_letters(config, *text);
  } else if (rule == WindowRule::kPattern) {
    DP_TRY(const auto pattern, get_integer(json, "sliding_window_pattern"));
    DP_CHECK(set_sliding_pattern(config, pattern.value_or(row.window_pattern)));
  }
  const Json* types = find(json, "layer_types");
  if (types && !types->is_null()) DP_CHECK(set_layer_types(config, row.huggingface, rule, *types));
  // A window that no layer has is none.
  if (!config.is_sliding.empty() && std::ranges::count(config.is_sliding, 1) == 0) {
    config.sliding_window = 0;
    config.is_sliding.clear();
  }
  return {};
}

Result<void> read_attention(const Json& json, const HuggingFaceRow& row, ModelConfig& config) {
  DP_TRY(const double scalar, number_or(json, "query_pre_attn_scalar", config.head_dim));
  if (!(scalar > 0) || !std::isfinite(scalar)) {
    return fail(ErrorKind::kInvalidInput, "Field \"query_pre_attn_scalar\" is %g; it must be above 0.",
                scalar);
  }
  config.attention_scale =
      row.query_scalar ? static_cast<float>(1 / std::sqrt(scalar)) : usual_attention_scale(config);
  DP_TRY(const double softcap, number_or(json, "attn_logit_softcapping", 0));
  config.attention_softcap = static_cast<float>(softcap);
  const std::pair<const char*, bool> kOthers[] = {
      {"query_pre_attn_scalar", !row.query_scalar && scalar != config.head_dim},
      {"attn_logit_softcapping", !row.attention_softcap && softcap != 0},
  };
  for (const auto& [key, is_refused] : kOthers) {
    if (!is_refused) continue;
    return fail(ErrorKind::kUnsupported, "Field \"%s\" is not supported in models of type \"%s\".", key,
                config.architecture.c_str());
  }
  return {};
}

Result<void> read_biases(const Json& json, Biases rule, ModelConfig& config) {
  const std::pair<const char*, bool*> kFields[] = {{"attention_bias", &config.attention_bias},
                                                   {"mlp_bias", &config.mlp_bias}};
  for (const auto& [key, asked] : kFields) {
    DP_TRY(const auto value, get_bool(json, key));
    *asked = value.value_or(false);
    const bool is_known =
        rule == Biases::kConfigKeys || (rule == Biases::kQkvKey && asked == &config.attention_bias);
    if (!*asked || is_known) continue;
    return fail(ErrorKind::kUnsupported, "Field \"%s\" is not supported in models of type \"%s\".", key,
                config.architecture.c_str());
  }
  return {};
}

// Models whose layers all have experts may give only the experts' width; others give one a layer.
Result<uint32_t> read_ffn_dim(const Json& json) {
  const Json* list = find(json, "intermediate_size");
  if (list && list->is_array() && !list->empty()) {
    const auto is_first = [&](const Json& dim) { return dim == list->front(); };
    if (!std::ranges::all_of(*list, is_first)) {
      return fail(ErrorKind::kUnsupported,
                  "Field \"intermediate_size\" has several numbers; supported is one.");
    }
    return required_count({{"intermediate_size", list->front()}}, "intermediate_size");
  }
  const bool has_experts_only = !find(json, "intermediate_size") && find(json, "moe_intermediate_size");
  return required_count(json, has_experts_only ? "moe_intermediate_size" : "intermediate_size");
}

// A list of the layers' kinds may stand for it (transformers 5).
Result<uint32_t> read_layer_count(const Json& json) {
  const Json* kinds = find(json, "layers_block_type");
  if (find(json, "num_hidden_layers") || !kinds || !kinds->is_array()) {
    return required_count(json, "num_hidden_layers");
  }
  return static_cast<uint32_t>(kinds->size());
}

WindowRule window_rule(const HuggingFaceRow& row, std::string_view model_type) {
  const auto type = std::ranges::find(row.model_types, model_type, &HuggingFaceType::model_type);
  return type == row.model_types.end() ? WindowRule::kNone : type->window;
}

// The text model's fields, with transformers' defaults for what is left out.
Json with_defaults(const Json& whole, const HuggingFaceRow& row) {
  const Json* text = find(whole, "text_config");
  const bool is_wrapped = text && text->is_object();
  Json json = is_wrapped ? *text : whole;
  // transformers ties by the outer field.
  const Json* tied = is_wrapped ? find(whole, "tie_word_embeddings") : nullptr;
  if (tied && tied->is_boolean()) json["tie_word_embeddings"] = *tied;
  for (const FieldDefault& field : row.defaults) {
    const Json* present = find(json, field.key);
    // A window or a softcap of null is none; other fields of null are left out.
    const std::string_view key = field.key;
    const bool none = key == "sliding_window" || key.ends_with("softcapping");
    const bool is_null = present && present->is_null() && !none;
    if (present && !is_null) continue;
    json[field.key] = field.is_count ? Json(static_cast<int64_t>(field.value)) : Json(field.value);
  }
  return json;
}

}  // namespace

Result<void> require_truth(const Json& json, const char* key, bool truth) {
  DP_TRY(const bool given, bool_or(json, key, truth));
  if (given == truth) return {};
  return fail(ErrorKind::kUnsupported, "Field \"%s\" is %s; supported is %s.", key, given ? "true" : "false",
              truth ? "true" : "false");
}

Result<void> require_text(const Json& json, const char* key, const char* wanted) {
  DP_TRY(const auto text, get_string(json, key));
  if (text.value_or(wanted) == wanted) return {};
  return fail(ErrorKind::kUnsupported, "Field \"%s\" is \"%s\"; supported is \"%s\".", key,
              printable(*text).c_str(), wanted);
}

Result<ModelConfig> config_from_huggingface(const Json& whole) {
  ModelConfig config;
  DP_TRY(const auto model_type, get_string(whole, "model_type"));
  if (!model_type) return fail(ErrorKind::kInvalidInput, "Field \"model_type\" is missing in config.json.");
  config.architecture = *model_type;
  // A wrapper that is for any text model is named after what it wraps.
  const Json* wrapped = find(whole, "text_config");
  if (!find_architecture_huggingface(config.architecture) && wrapped) {
    DP_TRY(const auto text_type, get_string(*wrapped, "model_type"));
    if (text_type && find_architecture_huggingface(*text_type)) config.architecture = *text_type;
  }
  // A decoder made an encoder is an architecture of its own.
  const Json* sees_all = find(wrapped ? *wrapped : whole, "use_bidirectional_attention");
  if (sees_all && sees_all->is_boolean() && sees_all->get<bool>()) config.architecture += ", bidirectional";
  DP_TRY(const Architecture* row, find_architecture_huggingface(config.architecture));
  config.family = row->family;
  const HuggingFaceRow& own = row->huggingface;
  const Json json = with_defaults(whole, own);

  DP_TRY(config.n_layers, read_layer_count(json));
  DP_TRY(config.n_heads, required_count(json, "num_attention_heads"));
  DP_TRY(const auto n_kv_heads, get_count(json, "num_key_value_heads"));
  config.n_kv_heads = n_kv_heads.value_or(config.n_heads);
  DP_TRY(config.hidden_dim, required_count(json, "hidden_size"));
  DP_TRY(const auto head_dim, get_count(json, "head_dim"));
  config.head_dim = head_dim.value_or(config.n_heads == 0 ? 0 : config.hidden_dim / config.n_heads);
  if (own.latent_attention) DP_CHECK(read_huggingface_latents(json, config));
  DP_TRY(config.ffn_dim, read_ffn_dim(json));
  DP_TRY(config.vocab_size, required_count(json, "vocab_size"));
  DP_TRY(const auto ctx_len, get_count(json, "max_position_embeddings"));
  config.ctx_len = ctx_len.value_or(2048);
  DP_TRY(const double eps, number_or(json, std::string(own.norm_epsilon).c_str(), 1e-6));
  config.norm_eps = static_cast<float>(eps);
  DP_TRY(const auto tied, get_bool(json, "tie_word_embeddings"));
  config.tied_embeddings = tied.value_or(own.tied_embeddings);
  config.activation = row->activation;
  if (std::ranges::find(own.keys, "hidden_act") == own.keys.end()) {
    DP_TRY(config.activation, read_activation(json, own, row->activation));
  }
  config.bidirectional = row->bidirectional;
  if (config.bidirectional) config.pooling.kind = Pooling::kMean;  // as sentence-transformers without modules
  DP_TRY(config.rope, read_rope(json, config, own.pairing.value));
  if (own.latent_attention) config.rope.rotary_dim = config.mla.rope_dim;
  if (!row->rotates) {
    config.rope = {.rotary_dim = 0};
    DP_TRY(config.n_token_types, required_count(json, "type_vocab_size"));
  }
  DP_TRY(config.query_scaling, read_query_scaling(json, config));
  if (row->sliding_rope_theta != 0) {
    DP_TRY(config.local_rope, read_sliding_rope(json, config.rope, row->sliding_rope_theta));
  }
  DP_CHECK(check_config(config));
  DP_CHECK(read_window(json, *row, window_rule(own, config.architecture), config));
  DP_CHECK(read_attention(json, own, config));
  DP_CHECK(read_biases(json, row->biases, config));
  DP_CHECK(refuse_others(json, own, config));
  if (own.read) {
    DP_CHECK(own.read(json, config));
    DP_CHECK(check_config(config));  // it may have set any field
  }
  // A list in which no layer has a recurrent state is none.
  std::vector<uint8_t>& is_recurrent = config.recurrent.is_recurrent;
  if (std::ranges::count(is_recurrent, 1) == 0) is_recurrent.clear();
  DP_CHECK(check_scales(config));
  return config;
}

}  // namespace doppler::formats
