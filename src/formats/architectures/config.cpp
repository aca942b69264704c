// Picks the reader by the kind of checkpoint and checks what every family relies on.
#include "formats/architectures/config.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "formats/architectures/architecture.h"
#include "formats/architectures/config_sources.h"
#include "formats/architectures/next_layer.h"
#include "formats/architectures/refused_fields.h"
#include "formats/architectures/tensor_names.h"

namespace doppler::formats {
namespace {

constexpr uint32_t kMostLayers = 1024;

struct Range {
  const char* what;
  uint32_t value;
  uint32_t least;
  uint32_t most;
};

}  // namespace

const char* pooling_name(Pooling pooling) {
  constexpr const char* kPoolingNames[] = {"none", "mean", "cls", "last"};
  return kPoolingNames[static_cast<size_t>(pooling)];
}

bool is_embedding_model(const ModelConfig& config) { return config.pooling.kind != Pooling::kNone; }

uint32_t output_dim(const ModelConfig& config) {
  if (!is_embedding_model(config)) return config.vocab_size;
  if (config.pooling.n_classes != 0) return config.pooling.n_classes;
  return config.pooling.dense_dims.empty() ? config.hidden_dim : config.pooling.dense_dims.back();
}

Result<void> check_scales(const ModelConfig& c) {
  const std::pair<const char*, double> scales[] = {
      {"attention scale", c.attention_scale},
      {"embedding scale", c.embedding_scale},
      {"residual scale", c.residual_scale},
      {"logits scale", c.logits_scale},
      {"scale of the experts' weights", c.moe.weight_scale},
  };
  for (const auto& [what, scale] : scales) {
    if (scale > 0 && std::isfinite(scale)) continue;
    return fail(ErrorKind::kInvalidInput, "The %s is %g; it must be above 0.", what, scale);
  }
  for (const double cap : {c.attention_softcap, c.final_softcap}) {
    if (cap >= 0 && std::isfinite(cap)) continue;
    return fail(ErrorKind::kInvalidInput, "A softcap is %g; it must be above 0, or 0 for none.", cap);
  }
  const QueryScaling& q = c.query_scaling;
  if (!std::isfinite(q.beta) || (q.beta != 0 && !(q.ctx_len >= 1))) {
    return fail(ErrorKind::kInvalidInput,
                "The scaling of queries has beta %g from %g positions on; allowed is a number and 1 or more.",
                q.beta, q.ctx_len);
  }
  return {};
}

Result<void> check_config(const ModelConfig& c) {
  // Upper bounds are about ten times the largest published models: they stop a hostile file, not a real one.
  const Range ranges[] = {
      {"layer count", c.n_layers, 1, kMostLayers},     {"head count", c.n_heads, 1, 1024},
      {"kv head count", c.n_kv_heads, 1, 1024},        {"head dimension", c.head_dim, 1, 1024},
      {"hidden dimension", c.hidden_dim, 1, 1u << 18}, {"feed-forward dimension", c.ffn_dim, 1, 1u << 20},
      {"vocabulary size", c.vocab_size, 1, 1u << 22},  {"context length", c.ctx_len, 1, 1u << 28},
  };
  for (const Range& range : ranges) {
    if (range.value < range.least || range.value > range.most) {
      return fail(ErrorKind::kInvalidInput, "The %s is %u; allowed is %u to %u.", range.what, range.value,
                  range.least, range.most);
    }
  }
  if (c.n_heads % c.n_kv_heads != 0) {
    return fail(ErrorKind::kInvalidInput, "The head count (%u) is not a multiple of the kv head count (%u).",
                c.n_heads, c.n_kv_heads);
  }
  const RopeConfig& r = c.rope;
  const bool is_unrotated = c.n_token_types != 0 && r.rotary_dim == 0;
  if (!is_unrotated && (r.rotary_dim < 2 || r.rotary_dim > c.head_dim || r.rotary_dim % 2 != 0)) {
    return fail(ErrorKind::kInvalidInput,
                "The rotary dimension is %u; allowed is an even number from 2 up to the head dimension (%u).",
                r.rotary_dim, c.head_dim);
  }
  const bool sane = std::isfinite(c.norm_eps) && c.norm_eps >= 0 && std::isfinite(r.theta) && r.theta >= 1 &&
                    std::isfinite(r.factor) && r.factor > 0 && std::isfinite(r.original_ctx_len);
  if (!sane)
    return fail(ErrorKind::kInvalidInput,
                "The norm epsilon, rope theta or rope factor is not a usable number.");
  const bool needs_original = r.scaling == RopeScaling::kLlama3 || r.scaling == RopeScaling::kYarn ||
                              r.scaling == RopeScaling::kLongRope;
  if (needs_original && r.original_ctx_len < 1) {
    return fail(ErrorKind::kInvalidInput,
                "The rope scaling needs the original context length, which is missing.");
  }
  return {};
}

bool is_next_layer(const ModelConfig& config, uint32_t layer) {
  return layer >= config.n_layers && layer - config.n_layers < config.next_layers;
}

bool is_sliding_layer(const ModelConfig& config, uint32_t layer) {
  if (config.sliding_window == 0 || is_next_layer(config, layer)) return false;
  return config.is_sliding.empty() || (layer < config.is_sliding.size() && config.is_sliding[layer] != 0);
}

bool is_rotated_layer(const ModelConfig& config, uint32_t layer) {
  if (config.rope.rotary_dim == 0) return false;
  return layer >= config.is_unrotated.size() || config.is_unrotated[layer] == 0;
}

bool has_mixer(const ModelConfig& config, uint32_t layer) {
  return layer >= config.is_feed_forward.size() || config.is_feed_forward[layer] == 0;
}

bool has_feed_forward(const ModelConfig& config, uint32_t layer) {
  return layer >= config.is_feed_forward.size() || config.is_feed_forward[layer] != 0;
}

bool ends_at_ctx_len(const ModelConfig& config) {
  return config.n_token_types != 0 || config.rope.scaling == RopeScaling::kDynamic;
}

uint32_t expert_row_dim(const ModelConfig& config) {
  return config.moe.row_dim != 0 ? config.moe.row_dim : config.hidden_dim;
}

bool is_moe_layer(const ModelConfig& config, uint32_t layer) {
  const std::vector<uint8_t>& is_moe = config.moe.is_moe;
  if (config.moe.n_experts == 0) return false;
  if (is_next_layer(config, layer)) return true;
  return is_moe.empty() || (layer < is_moe.size() && is_moe[layer] != 0);
}

bool is_recurrent_layer(const ModelConfig& config, uint32_t layer) {
  const std::vector<uint8_t>& is_recurrent = config.recurrent.is_recurrent;
  return layer < is_recurrent.size() && is_recurrent[layer] != 0;
}

uint32_t head_dim_of(const ModelConfig& config, uint32_t layer) {
  const bool own = config.sliding_head_dim != 0 && is_sliding_layer(config, layer);
  return own ? config.sliding_head_dim : config.head_dim;
}

uint32_t kv_heads_of(const ModelConfig& config, uint32_t layer) {
  const bool own = config.sliding_kv_heads != 0 && is_sliding_layer(config, layer);
  return own ? config.sliding_kv_heads : config.n_kv_heads;
}

uint32_t ffn_dim_of(const ModelConfig& config, uint32_t layer) {
  const bool own = config.shared_ffn_dim != 0 && layer + config.shared_kv_layers >= config.n_layers &&
                   !is_next_layer(config, layer);
  return own ? config.shared_ffn_dim : config.ffn_dim;
}

float gate_deviations_of(const ModelConfig& config, uint32_t layer) {
  return layer < config.gate_deviations.size() ? config.gate_deviations[layer] : kAllGates;
}

uint32_t cache_layer(const ModelConfig& config, uint32_t layer) {
  const uint32_t first_shared = config.n_layers - std::min(config.shared_kv_layers, config.n_layers);
  if (layer < first_shared || is_next_layer(config, layer)) return layer;
  for (uint32_t i = first_shared; i-- > 0;) {
    if (is_sliding_layer(config, i) == is_sliding_layer(config, layer)) return i;
  }
  return layer;
}

bool has_cache(const ModelConfig& config, uint32_t layer) {
  return has_mixer(config, layer) && !is_recurrent_layer(config, layer) &&
         cache_layer(config, layer) == layer;
}

bool has_equal_caches(const ModelConfig& config) {
  return config.recurrent.is_recurrent.empty() && config.is_feed_forward.empty() &&
         config.shared_kv_layers == 0 && config.sliding_head_dim == 0 && config.sliding_kv_heads == 0;
}

float usual_attention_scale(const ModelConfig& config) {
  return 1.0f / std::sqrt(static_cast<float>(config.head_dim));
}

Result<void> set_sliding_pattern(ModelConfig& config, int64_t pattern) {
  if (pattern < 1 || pattern > UINT32_MAX) {
    return fail(ErrorKind::kInvalidInput, "The sliding window pattern is %lld; allowed is 1 to 2^32-1.",
                static_cast<long long>(pattern));
  }
  if (config.sliding_window == 0) return {};
  // The count is checked only after this; more layers than are allowed need no entry.
  config.is_sliding.resize(std::min(config.n_layers, kMostLayers));
  for (size_t i = 0; i < config.is_sliding.size(); ++i) {
    config.is_sliding[i] = (i + 1) % static_cast<uint64_t>(pattern) != 0;
  }
  return {};
}

Result<ModelConfig> read_config(const Checkpoint& checkpoint) {
  if (checkpoint.tensors().empty()) {
    return fail(ErrorKind::kInvalidInput, "%s holds no tensors: it is only a vocabulary or metadata.",
                checkpoint.name().c_str());
  }
  const ShapeLookup shape_of = [&](std::string_view name) {
    const TensorInfo* tensor = checkpoint.find(name);
    return tensor ? &tensor->shape : nullptr;
  };
  if (const GgufFile* gguf = checkpoint.gguf()) return config_from_gguf(*gguf, shape_of);
  DP_CHECK(check_quantisation(checkpoint.config()));
  DP_TRY(ModelConfig config, config_from_huggingface(checkpoint.config()));
  config.name = checkpoint.name();
  // Published encoders and embedding models often have no prefix.
  const Architecture& row = architecture_of(config);
  config.huggingface_prefix = row.huggingface.prefix;
  if (!checkpoint.find(tensor_name(config, TensorId::kEmbedding, 0))) {
    config.huggingface_prefix.clear();
    if (!checkpoint.find(tensor_name(config, TensorId::kEmbedding, 0)))
      config.huggingface_prefix = row.huggingface.prefix;
  }
  // The places that published checkpoints of models that also see have had for the text model.
  for (const auto& [prefix, head_prefix] :
       {std::pair("language_model.model.", "language_model."), std::pair("model.language_model.", ""),
        std::pair("model.text_model.", "")}) {
    if (!checkpoint.find(std::string(prefix) + "embed_tokens.weight")) continue;
    config.huggingface_prefix = prefix;
    config.huggingface_head_prefix = head_prefix;
  }
  // transformers ties by tie_word_embeddings only if the file has no output matrix of its own.
  config.tied_embeddings = !checkpoint.find(config.huggingface_head_prefix + "lm_head.weight");
  DP_CHECK(find_next_layer(checkpoint.config(), shape_of, config));
  DP_CHECK(read_pooling(checkpoint.config(), shape_of, config));
  return config;
}

uint32_t layers_left_out(const Checkpoint& checkpoint, const ModelConfig& config) {
  if (checkpoint.gguf()) return 0;
  const std::string prefix =
      config.huggingface_prefix + std::string(architecture_of(config).huggingface.layers);
  // Layers that guess further tokens may follow the last one.
  const Json* text = find(checkpoint.config(), "text_config");
  const Json* guessing = find(text ? *text : checkpoint.config(), "num_nextn_predict_layers");
  uint64_t counted = config.n_layers;
  if (guessing && guessing->is_number_unsigned()) counted += guessing->get<uint32_t>();
  uint64_t present = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (!tensor.name.starts_with(prefix)) continue;
    present = std::max<uint64_t>(present, layer_of_tensor(tensor.name).value_or(0) + uint64_t{1});
  }
  return static_cast<uint32_t>(present - std::min(present, counted));
}

}  // namespace doppler::formats
