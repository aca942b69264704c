// The table and what is looked up in it (architecture.h).
#include <algorithm>
#include <tuple>

#include "base/altup.h"
#include "base/stable_order.h"
#include "base/text.h"
#include "formats/architectures/rows.h"
#include "formats/architectures/towers/tower_rows.h"

namespace doppler::formats {
namespace {

using enum TensorId;

#define FAMILY(name) &rows::name,
#define FAMILY_LIKE(name, page) &rows::name,
constexpr const Architecture* kTable[] = {
#include "formats/architectures/family_list.h"
};

// The most likely meaning of an unknown name: a name that is spelt nearly so, else the one that begins most like it.
std::string nearest_of(std::string_view name, const std::vector<std::string>& known) {
  constexpr ptrdiff_t kFewest = 4;  // letters that say something of a family
  const auto shared = [&](const std::string& other) {
    return std::ranges::mismatch(name, other).in1 - name.begin();
  };
  const auto likeness = [&](const std::string& other) {
    // The last of equals by name wins: numbers of families grow.
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
  for (const Architecture* row : towers::rows()) {
    if (row->family == config.family) return *row;
  }
  return *kTable[0];  // read_config() only gives names of this table
}

std::string_view gguf_architecture(const ModelConfig& config) {
  const GgufRow& row = architecture_of(config).gguf;
  if (has_axes(config.rope) && !row.of_axes.empty()) return row.of_axes;
  const std::span<const std::string_view> names = row.architectures;
  return config.moe.n_experts != 0 ? names.back() : names.front();
}

namespace {

struct Extent {
  Dim dim;
  uint64_t (*of)(const ModelConfig& c, uint32_t layer);
};

// In the order of Dim.
constexpr Extent kExtents[] = {
    {Dim::kHidden, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.hidden_dim; }},
    {Dim::kQRows,
     [](const ModelConfig& c, uint32_t layer) -> uint64_t {
       return uint64_t{c.n_heads} * head_dim_of(c, layer);
     }},
    {Dim::kKvRows,
     [](const ModelConfig& c, uint32_t layer) -> uint64_t {
       return uint64_t{kv_heads_of(c, layer)} * head_dim_of(c, layer);
     }},
    {Dim::kFfn, [](const ModelConfig& c, uint32_t layer) -> uint64_t { return ffn_dim_of(c, layer); }},
    {Dim::kVocab, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.vocab_size; }},
    {Dim::kHeadDim, [](const ModelConfig& c, uint32_t layer) -> uint64_t { return head_dim_of(c, layer); }},
    {Dim::kHeads, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.n_heads; }},
    {Dim::kExperts, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.moe.n_experts; }},
    {Dim::kExpertFfn, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.moe.expert_dim; }},
    {Dim::kExpertRow, [](const ModelConfig& c, uint32_t) -> uint64_t { return expert_row_dim(c); }},
    {Dim::kSharedFfn, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.moe.shared_dim; }},
    {Dim::kOne, [](const ModelConfig&, uint32_t) -> uint64_t { return 1; }},
    {Dim::kConvKernel, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.recurrent.conv_kernel; }},
    {Dim::kConvChannels,
     [](const ModelConfig& c, uint32_t) -> uint64_t { return c.recurrent.conv_channels; }},
    {Dim::kConvInRows,
     [](const ModelConfig& c, uint32_t) -> uint64_t { return 3ull * c.recurrent.conv_channels; }},
    {Dim::kKeyHeads, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.recurrent.n_key_heads; }},
    {Dim::kValueHeads, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.recurrent.n_value_heads; }},
    {Dim::kValueRows,
     [](const ModelConfig& c, uint32_t) -> uint64_t {
       return uint64_t{c.recurrent.n_value_heads} * c.recurrent.value_dim;
     }},
    {Dim::kValueDim, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.recurrent.value_dim; }},
    {Dim::kDense1Rows,
     [](const ModelConfig& c, uint32_t) -> uint64_t {
       return c.pooling.dense_dims.empty() ? 0 : c.pooling.dense_dims[0];
     }},
    {Dim::kDense2Rows,
     [](const ModelConfig& c, uint32_t) -> uint64_t {
       return c.pooling.dense_dims.size() < 2 ? 0 : c.pooling.dense_dims[1];
     }},
    {Dim::kPositionCount, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.ctx_len; }},
    {Dim::kTypeCount, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.n_token_types; }},
    {Dim::kClassCount, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.pooling.n_classes; }},
    {Dim::kMambaInRows,
     [](const ModelConfig& c, uint32_t) -> uint64_t {
       return uint64_t{c.recurrent.n_value_heads} * (c.recurrent.value_dim + 1) + c.recurrent.conv_channels;
     }},
    {Dim::kLatentQRows,
     [](const ModelConfig& c, uint32_t) -> uint64_t {
       return uint64_t{c.n_heads} * (c.mla.nope_dim + c.mla.rope_dim);
     }},
    {Dim::kQRank, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.mla.q_rank; }},
    {Dim::kKvRank, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.mla.kv_rank; }},
    {Dim::kLatentRows,
     [](const ModelConfig& c, uint32_t) -> uint64_t { return uint64_t{c.mla.kv_rank} + c.mla.rope_dim; }},
    {Dim::kNopeDim, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.mla.nope_dim; }},
    {Dim::kLatentValueDim, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.mla.value_dim; }},
    {Dim::kLatentValueRows,
     [](const ModelConfig& c, uint32_t) -> uint64_t { return uint64_t{c.n_heads} * c.mla.value_dim; }},
    {Dim::kLayerInput, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.layer_input.dim; }},
    {Dim::kAllLayerInputs,
     [](const ModelConfig& c, uint32_t) -> uint64_t { return uint64_t{c.n_layers} * c.layer_input.dim; }},
    {Dim::kLayerInputVocab,
     [](const ModelConfig& c, uint32_t) -> uint64_t { return c.layer_input.vocab_size; }},
    {Dim::kStreams, [](const ModelConfig&, uint32_t) -> uint64_t { return kAltupStreams; }},
    {Dim::kStreamPairs,
     [](const ModelConfig&, uint32_t) -> uint64_t { return uint64_t{kAltupStreams} * kAltupStreams; }},
    {Dim::kLaurelRank, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.laurel_rank; }},
    {Dim::kTwoHidden, [](const ModelConfig& c, uint32_t) -> uint64_t { return 2ull * c.hidden_dim; }},
    {Dim::kPatchValues, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.tower.patch_values; }},
    {Dim::kMerged,
     [](const ModelConfig& c, uint32_t) -> uint64_t { return uint64_t{merged_patches(c)} * c.hidden_dim; }},
    {Dim::kImageDim, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.tower.image_dim; }},
    {Dim::kProjector, [](const ModelConfig& c, uint32_t) -> uint64_t { return c.tower.projector_dim; }},
    {Dim::kLimits, [](const ModelConfig&, uint32_t) -> uint64_t { return kLimitCount; }},
};

constexpr bool in_order_of_dims() {
  for (size_t i = 0; i < std::size(kExtents); ++i) {
    if (kExtents[i].dim != static_cast<Dim>(i)) return false;
  }
  return std::size(kExtents) == static_cast<size_t>(Dim::kLimits) + 1;
}
static_assert(in_order_of_dims());

}  // namespace

uint64_t extent(Dim dim, const ModelConfig& config, uint32_t layer) {
  return kExtents[static_cast<size_t>(dim)].of(config, layer);
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

namespace {

bool has_own_keys(const ModelConfig& c, uint32_t layer) {
  return has_mixer(c, layer) && cache_layer(c, layer) == layer;
}

bool has_own_values(const ModelConfig& c, uint32_t layer) {
  return has_own_keys(c, layer) && !(c.values_are_keys && !is_sliding_layer(c, layer));
}

bool has_dense_feed_forward(const ModelConfig& c, uint32_t layer) {
  return has_feed_forward(c, layer) && (!is_moe_layer(c, layer) || c.moe.is_beside_dense);
}

bool has_shared_expert(const ModelConfig& c, uint32_t layer) {
  return is_moe_layer(c, layer) && c.moe.shared_dim != 0;
}

bool has_small_expert_rows(const ModelConfig& c, uint32_t layer) {
  return is_moe_layer(c, layer) && c.moe.row_dim != 0;
}

bool has_layer_inputs(const ModelConfig& c, uint32_t) { return c.layer_input.dim != 0; }

bool compresses_queries(const ModelConfig& c, uint32_t) { return c.mla.q_rank != 0; }

// Tensors of a row's lists that not every model or layer of the family has.
struct Condition {
  TensorId id;
  bool (*is_there)(const ModelConfig& c, uint32_t layer);
};

constexpr Condition kConditions[] = {
    {kAttentionNorm,
     [](const ModelConfig& c, uint32_t layer) { return layer != 0 || architecture_of(c).has_first_norm; }},
    {kQ, [](const ModelConfig& c, uint32_t layer) { return has_mixer(c, layer) && c.mla.q_rank == 0; }},
    {kK, has_own_keys},
    {kV, has_own_values},
    {kAttentionOut, has_mixer},
    {kQNorm, [](const ModelConfig& c, uint32_t) { return c.has_qk_norm; }},
    {kKNorm, [](const ModelConfig& c, uint32_t layer) { return c.has_qk_norm && has_own_keys(c, layer); }},
    {kSinks, [](const ModelConfig& c, uint32_t) { return c.attention_sinks; }},
    {kQDown, compresses_queries},
    {kQDownNorm, compresses_queries},
    {kQUp, compresses_queries},
    {kGate, has_dense_feed_forward},
    {kUp, has_dense_feed_forward},
    {kDown, has_dense_feed_forward},
    {kRouter, is_moe_layer},
    {kRouterNorm, is_moe_layer},
    {kRouterBias,
     [](const ModelConfig& c, uint32_t layer) { return is_moe_layer(c, layer) && c.moe.has_score_bias; }},
    {kExpertScale, is_moe_layer},
    {kExpertNorm, is_moe_layer},
    {kDenseOutNorm, is_moe_layer},
    {kExpertOutNorm, is_moe_layer},
    {kExpertGate, is_moe_layer},
    {kExpertUp, is_moe_layer},
    {kExpertDown, is_moe_layer},
    {kSharedGate, has_shared_expert},
    {kSharedUp, has_shared_expert},
    {kSharedDown, has_shared_expert},
    {kSharedRouter,
     [](const ModelConfig& c, uint32_t layer) { return is_moe_layer(c, layer) && c.moe.shared_gate; }},
    {kExpertsIn, has_small_expert_rows},
    {kExpertsOut, has_small_expert_rows},
    {kLayerTable, has_layer_inputs},
    {kLayerTableProj, has_layer_inputs},
    {kLayerTableNorm, has_layer_inputs},
    {kLayerInputGate, has_layer_inputs},
    {kLayerInputProj, has_layer_inputs},
    {kLayerInputNorm, has_layer_inputs},
    {kDense1, [](const ModelConfig& c, uint32_t) { return !c.pooling.dense_dims.empty(); }},
    {kDense2, [](const ModelConfig& c, uint32_t) { return c.pooling.dense_dims.size() > 1; }},
    {kClassDense, [](const ModelConfig& c, uint32_t) { return c.pooling.has_class_dense; }},
    {kClassNorm, [](const ModelConfig& c, uint32_t) { return c.pooling.has_class_norm; }},
    {kClassOut, [](const ModelConfig& c, uint32_t) { return c.pooling.n_classes != 0; }},
    {kNextProjection, is_next_layer},
    {kNextEmbeddingNorm, is_next_layer},
    {kNextHiddenNorm, is_next_layer},
    {kNextNorm, is_next_layer},
};

}  // namespace

bool has_tensor(const ModelConfig& config, TensorId id, uint32_t layer) {
  const auto condition = std::ranges::find(kConditions, id, &Condition::id);
  return condition == std::end(kConditions) || condition->is_there(config, layer);
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
