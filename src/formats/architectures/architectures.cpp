// The table and what is looked up in it (architecture.h).
#include <algorithm>
#include <tuple>

#include "base/altup.h"
#include "base/stable_order.h"
#include "base/text.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace {

using enum TensorId;

#define FAMILY(name) &rows::name,
#define FAMILY_LIKE(name, page) &rows::name,
constexpr const Architecture* kTable[] = {
#include "formats/architectures/family_list.h"
};

// What an unknown name most likely was to be: a name that is spelt nearly so, else the one that begins most like it.
std::string nearest_of(std::string_view name, const std::vector<std::string>& known) {
  constexpr ptrdiff_t kFewest = 4;  // letters that say something of a family
  const auto shared = [&](const std::string& other) {
    return std::ranges::mismatch(name, other).in1 - name.begin();
  };
  const auto likeness = [&](const std::string& other) {
    // Of equals the last by name: numbers of families grow.
    return std::tuple(shared(other), -static_cast<ptrdiff_t>(other.size()), std::string_view(other));
  };
  std::vector<std::string> likest;
  for (const uint32_t at : stable_order(
           known.size(), [&](uint32_t a, uint32_t b) { return likeness(known[a]) > likeness(known[b]); })) {
    likest.push_back(known[at]);
  }
  if (auto spelt = nearest(name, likest)) return std::move(*spelt);
  return shared(likest[0]) >= kFewest ? likest[0] : "";
}

Unexpected unknown(const char* what, std::string_view name, const char* where,
                   const std::vector<std::string>& known) {
  std::string names;
  for (const std::string& each : known) names += (names.empty() ? "" : ", ") + each;
  const std::string near = nearest_of(name, known);
  return fail(ErrorKind::kUnsupported, "%s \"%s\" is not supported%s; supported in %s: %s.", what,
              printable(name).c_str(), near.empty() ? "" : (" (the nearest is " + near + ")").c_str(), where,
              names.c_str());
}

}  // namespace

std::span<const Architecture* const> all_architectures() { return kTable; }

Result<const Architecture*> find_architecture_gguf(std::string_view architecture) {
  std::vector<std::string> known;
  for (const Architecture* row : kTable) {
    for (const std::string_view name : row->gguf.architectures) {
      if (name == architecture) return row;
      known.emplace_back(name);
    }
  }
  return unknown("Architecture", architecture, "GGUF files", known);
}

Result<const Architecture*> find_architecture_huggingface(std::string_view model_type) {
  std::vector<std::string> known;
  for (const Architecture* row : kTable) {
    for (const HuggingFaceType& type : row->huggingface.model_types) {
      if (type.model_type == model_type) return row;
      known.emplace_back(type.model_type);
    }
  }
  return unknown("Model type", model_type, "Hugging Face folders", known);
}

const Architecture& architecture_of(const ModelConfig& config) {
  for (const Architecture* row : kTable) {
    if (row->family == config.family) return *row;
  }
  return *kTable[0];  // read_config() only gives names of this table
}

std::string_view gguf_architecture(const ModelConfig& config) {
  const std::span<const std::string_view> names = architecture_of(config).gguf.architectures;
  return config.moe.n_experts != 0 ? names.back() : names.front();
}

uint64_t extent(Dim dim, const ModelConfig& c, uint32_t layer) {
  switch (dim) {
    case Dim::kHidden:
      return c.hidden_dim;
    case Dim::kQRows:
      return uint64_t{c.n_heads} * head_dim_of(c, layer);
    case Dim::kKvRows:
      return uint64_t{kv_heads_of(c, layer)} * head_dim_of(c, layer);
    case Dim::kFfn:
      return ffn_dim_of(c, layer);
    case Dim::kVocab:
      return c.vocab_size;
    case Dim::kHeadDim:
      return head_dim_of(c, layer);
    case Dim::kHeads:
      return c.n_heads;
    case Dim::kExperts:
      return c.moe.n_experts;
    case Dim::kExpertFfn:
      return c.moe.expert_dim;
    case Dim::kExpertRow:
      return expert_row_dim(c);
    case Dim::kSharedFfn:
      return c.moe.shared_dim;
    case Dim::kOne:
      return 1;
    case Dim::kConvKernel:
      return c.recurrent.conv_kernel;
    case Dim::kConvChannels:
      return c.recurrent.conv_channels;
    case Dim::kConvInRows:
      return 3ull * c.recurrent.conv_channels;
    case Dim::kKeyHeads:
      return c.recurrent.n_key_heads;
    case Dim::kValueHeads:
      return c.recurrent.n_value_heads;
    case Dim::kValueRows:
      return uint64_t{c.recurrent.n_value_heads} * c.recurrent.value_dim;
    case Dim::kValueDim:
      return c.recurrent.value_dim;
    case Dim::kDense1Rows:
      return c.pooling.dense_dims.empty() ? 0 : c.pooling.dense_dims[0];
    case Dim::kDense2Rows:
      return c.pooling.dense_dims.size() < 2 ? 0 : c.pooling.dense_dims[1];
    case Dim::kPositionCount:
      return c.ctx_len;
    case Dim::kTypeCount:
      return c.n_token_types;
    case Dim::kClassCount:
      return c.pooling.n_classes;
    case Dim::kMambaInRows:
      return uint64_t{c.recurrent.n_value_heads} * (c.recurrent.value_dim + 1) + c.recurrent.conv_channels;
    case Dim::kLatentQRows:
      return uint64_t{c.n_heads} * (c.mla.nope_dim + c.mla.rope_dim);
    case Dim::kQRank:
      return c.mla.q_rank;
    case Dim::kKvRank:
      return c.mla.kv_rank;
    case Dim::kLatentRows:
      return uint64_t{c.mla.kv_rank} + c.mla.rope_dim;
    case Dim::kNopeDim:
      return c.mla.nope_dim;
    case Dim::kLatentValueDim:
      return c.mla.value_dim;
    case Dim::kLatentValueRows:
      return uint64_t{c.n_heads} * c.mla.value_dim;
    case Dim::kLayerInput:
      return c.layer_input.dim;
    case Dim::kAllLayerInputs:
      return uint64_t{c.n_layers} * c.layer_input.dim;
    case Dim::kLayerInputVocab:
      return c.layer_input.vocab_size;
    case Dim::kStreams:
      return kAltupStreams;
    case Dim::kStreamPairs:
      return uint64_t{kAltupStreams} * kAltupStreams;
    case Dim::kLaurelRank:
      return c.laurel_rank;
    case Dim::kTwoHidden:
      return 2ull * c.hidden_dim;
  }
  return 0;
}

std::vector<uint64_t> Shape::extents(const ModelConfig& config, uint32_t layer) const {
  std::vector<uint64_t> out(count_);
  for (size_t i = 0; i < count_; ++i) out[i] = extent(dims_[i], config, layer);
  return out;
}

std::vector<PlacedTensor> tensors_of(const ModelConfig& config) {
  const Architecture& row = architecture_of(config);
  std::vector<PlacedTensor> out = {{&tensor_row(row, kEmbedding), 0}};
  for (const TensorId id : row.model) {
    if (has_tensor(config, id, 0)) out.push_back({&tensor_row(row, id), 0});
  }
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    const std::span<const TensorId> ids = is_recurrent_layer(config, layer) ? row.recurrent_layer : row.layer;
    for (const TensorId id : ids) {
      if (has_tensor(config, id, layer)) out.push_back({&tensor_row(row, id), layer});
    }
  }
  if (row.has_final_norm) out.push_back({&tensor_row(row, kFinalNorm), 0});
  for (const TensorId id : {kDense1, kDense2, kClassDense, kClassNorm, kClassOut}) {
    if (has_tensor(config, id, 0)) out.push_back({&tensor_row(row, id), 0});
  }
  if (!config.tied_embeddings) out.push_back({&tensor_row(row, kOutput), 0});
  for (uint32_t layer = config.n_layers; is_next_layer(config, layer); ++layer) {
    for (const TensorId id : {kNextEmbeddingNorm, kNextHiddenNorm, kNextProjection}) {
      out.push_back({&tensor_row(row, id), layer});
    }
    for (const TensorId id : row.layer) {
      if (has_tensor(config, id, layer)) out.push_back({&tensor_row(row, id), layer});
    }
    out.push_back({&tensor_row(row, kNextNorm), layer});
  }
  return out;
}

bool is_of_next_layer(TensorId id) {
  return id == kNextProjection || id == kNextEmbeddingNorm || id == kNextHiddenNorm || id == kNextNorm;
}

bool has_tensor(const ModelConfig& config, TensorId id, uint32_t layer) {
  const bool is_moe = is_moe_layer(config, layer);
  const bool attends = has_mixer(config, layer), feeds = has_feed_forward(config, layer);
  const bool has_own_keys = attends && cache_layer(config, layer) == layer;
  switch (id) {
    case kK:
      return has_own_keys;
    case kV:
      return has_own_keys && !(config.values_are_keys && !is_sliding_layer(config, layer));
    case kGate:
    case kUp:
    case kDown:
      return feeds && (!is_moe || config.moe.is_beside_dense);
    case kRouter:
    case kRouterNorm:
    case kExpertScale:
    case kExpertNorm:
    case kDenseOutNorm:
    case kExpertOutNorm:
    case kExpertGate:
    case kExpertUp:
    case kExpertDown:
      return is_moe;
    case kLayerTable:
    case kLayerTableProj:
    case kLayerTableNorm:
    case kLayerInputGate:
    case kLayerInputProj:
    case kLayerInputNorm:
      return config.layer_input.dim != 0;
    case kRouterBias:
      return is_moe && config.moe.has_score_bias;
    case kSharedGate:
    case kSharedUp:
    case kSharedDown:
      return is_moe && config.moe.shared_dim != 0;
    case kSharedRouter:
      return is_moe && config.moe.shared_gate;
    case kExpertsIn:
    case kExpertsOut:
      return is_moe && config.moe.row_dim != 0;
    case kQNorm:
      return config.has_qk_norm;
    case kKNorm:
      return config.has_qk_norm && has_own_keys;
    case kSinks:
      return config.attention_sinks;
    case kQ:
      return attends && config.mla.q_rank == 0;
    case kAttentionOut:
      return attends;
    case kQDown:
    case kQDownNorm:
    case kQUp:
      return config.mla.q_rank != 0;
    case kDense1:
      return !config.pooling.dense_dims.empty();
    case kDense2:
      return config.pooling.dense_dims.size() > 1;
    case kClassDense:
      return config.pooling.has_class_dense;
    case kClassNorm:
      return config.pooling.has_class_norm;
    case kClassOut:
      return config.pooling.n_classes != 0;
    case kNextProjection:
    case kNextEmbeddingNorm:
    case kNextHiddenNorm:
    case kNextNorm:
      return is_next_layer(config, layer);
    case kAttentionNorm:
      return layer != 0 || architecture_of(config).has_first_norm;
    default:
      return true;
  }
}

bool must_have_bias(const ModelConfig& config, TensorId id) {
  const bool qkv = id == kQ || id == kK || id == kV;
  const Biases biases = architecture_of(config).biases;
  if (biases == Biases::kQkv) return qkv;
  if (biases == Biases::kQkvKey) return qkv && config.attention_bias;
  if (id == kGate || id == kUp || id == kDown) return config.mlp_bias;
  return config.attention_bias && (qkv || id == kAttentionOut);
}

uint32_t rotated_heads(const ModelConfig& config, TensorId id) {
  if (id == kQ) return config.n_heads;
  return id == kK ? config.n_kv_heads : 0;
}

}  // namespace doppler::formats
