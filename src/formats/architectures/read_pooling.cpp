// Finds whether a model gives vectors, and how: from sentence-transformers' modules, or from GGUF's pooling_type.
#include <algorithm>

#include "base/json.h"
#include "formats/architectures/architecture.h"
#include "formats/architectures/config_sources.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/rows.h"
#include "formats/architectures/tensor_names.h"
#include "formats/embedding_modules.h"

namespace doppler::formats {
namespace {

constexpr uint32_t kRank = 4;  // GGUF's pooling_type of models that score

// Numbers of outputs of matrices, by name, as long as there is one.
Result<void> set_dims(const ShapeLookup& shape_of, ModelConfig& config) {
  PoolingConfig& pooling = config.pooling;
  const auto rows = [&](const std::string& name) -> uint32_t {
    const std::vector<uint64_t>* shape = shape_of(name);
    if (!shape) return 0;
    return shape->size() < 2 ? 1 : static_cast<uint32_t>(std::min<uint64_t>((*shape)[0], UINT32_MAX));
  };
  for (const TensorId dense : {TensorId::kDense1, TensorId::kDense2}) {
    if (const uint32_t count = rows(tensor_name(config, dense, 0))) pooling.dense_dims.push_back(count);
  }
  const bool is_encoder = architecture_of(config).bidirectional;
  // In folders, only heads of encoders are known.
  if (is_encoder || config.gguf_names) pooling.n_classes = rows(tensor_name(config, TensorId::kClassOut, 0));
  const auto is_in_head = [&](TensorId id) {
    return pooling.n_classes != 0 && shape_of(tensor_name(config, id, 0)) != nullptr;
  };
  pooling.has_class_dense = is_in_head(TensorId::kClassDense);
  pooling.has_class_norm = is_in_head(TensorId::kClassNorm);
  constexpr uint32_t kMostRows = 1u << 18;
  for (const uint32_t count : pooling.dense_dims) {
    if (count > kMostRows) {
      return fail(ErrorKind::kInvalidInput, "A Dense module has %u outputs; allowed is up to %u.", count,
                  kMostRows);
    }
  }
  return {};
}

// The state that a class head reads: the first token's, or with a norm in the head (ModernBERT's) the one that
// config.json names.
Result<Pooling> read_class_pooling(const Json& json, bool has_norm) {
  if (!has_norm) return Pooling::kCls;
  DP_CHECK(require_text(json, "classifier_activation", "gelu"));
  DP_TRY(const auto name, get_string(json, "classifier_pooling"));
  if (name.value_or("cls") == "cls") return Pooling::kCls;
  if (*name == "mean") return Pooling::kMean;
  return fail(ErrorKind::kUnsupported, "Field \"classifier_pooling\" is \"%s\"; allowed are cls and mean.",
              printable(*name).c_str());
}

}  // namespace

Result<void> read_pooling(const Json& json, const ShapeLookup& shape_of, ModelConfig& config) {
  PoolingConfig& pooling = config.pooling;
  DP_CHECK(set_dims(shape_of, config));
  if (const Json* modules = find(json, kEmbeddingModules)) {
    DP_TRY(const auto name, get_string(*modules, "pooling"));
    DP_TRY(const auto normalise, get_bool(*modules, "normalize"));
    for (const Pooling kind : {Pooling::kMean, Pooling::kCls, Pooling::kLast}) {
      if (name == pooling_name(kind)) pooling.kind = kind;
    }
    pooling.normalise = normalise.value_or(false);
  } else if (pooling.n_classes != 0) {
    DP_TRY(pooling.kind, read_class_pooling(json, pooling.has_class_norm));
  }
  if (pooling.n_classes != 0) pooling.normalise = false;
  if (is_embedding_model(config)) config.tied_embeddings = true;  // there is no head
  return {};
}

Result<void> read_pooling(const GgufKeys& keys, const ShapeLookup& shape_of, ModelConfig& config) {
  PoolingConfig& pooling = config.pooling;
  DP_CHECK(set_dims(shape_of, config));
  DP_TRY(const auto given, keys.count("pooling_type"));
  const bool is_encoder = architecture_of(config).bidirectional;
  // Older files of encoders that score do not say so.
  const uint32_t kind = given.value_or(is_encoder && pooling.n_classes != 0 ? kRank : 0);
  if (kind > kRank) {
    return fail(ErrorKind::kUnsupported, "Key \"%s.pooling_type\" is %u; allowed is 0 to %u.",
                config.architecture.c_str(), kind, kRank);
  }
  if (kind == kRank) {
    if (pooling.n_classes == 0) {
      return fail(ErrorKind::kInvalidInput,
                  "The model scores texts, but has no tensor \"cls.output.weight\".");
    }
    // As llama.cpp takes heads with a norm, whose models are trained so.
    pooling.kind = pooling.has_class_norm ? Pooling::kMean : is_encoder ? Pooling::kCls : Pooling::kLast;
    pooling.normalise = false;
  } else {
    pooling.kind = kind == 0 && is_encoder ? Pooling::kMean : static_cast<Pooling>(kind);
    pooling.n_classes = 0;
    pooling.has_class_dense = pooling.has_class_norm = false;
  }
  if (is_embedding_model(config)) config.tied_embeddings = true;
  return {};
}

std::vector<GgufField> pooling_fields(const ModelConfig& config) {
  std::vector<GgufField> fields;
  if (config.bidirectional) fields.push_back({"attention.causal", false});
  if (!is_embedding_model(config)) return fields;
  const PoolingConfig& pooling = config.pooling;
  fields.push_back({"pooling_type", pooling.n_classes != 0 ? kRank : static_cast<uint32_t>(pooling.kind)});
  const char* const kKeys[kMostDense][2] = {{"dense_2_feat_in", "dense_2_feat_out"},
                                            {"dense_3_feat_in", "dense_3_feat_out"}};
  uint32_t in = config.hidden_dim;
  for (size_t i = 0; i < pooling.dense_dims.size(); ++i) {
    fields.push_back({kKeys[i][0], in});
    fields.push_back({kKeys[i][1], in = pooling.dense_dims[i]});
  }
  return fields;
}

}  // namespace doppler::formats
