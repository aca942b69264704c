// Whether a model gives vectors, and how: from sentence-transformers' modules, or from GGUF's pooling_type.
#include <algorithm>

#include "base/json.h"
#include "formats/architectures/architecture.h"
#include "formats/architectures/config_sources.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/embedding_modules.h"

namespace doppler::formats {
namespace {

constexpr uint32_t kRank = 4;  // GGUF's pooling_type of models that score

// Numbers of outputs of matrices, by name, as long as there is one.
Result<void> set_dims(const ShapeLookup& shape_of, const std::string (&dense)[kMostDense],
                      const std::string& class_dense, const std::string& class_out, PoolingConfig& pooling) {
  const auto rows = [&](const std::string& name) -> uint32_t {
    const std::vector<uint64_t>* shape = shape_of(name);
    if (!shape) return 0;
    return shape->size() < 2 ? 1 : static_cast<uint32_t>(std::min<uint64_t>((*shape)[0], UINT32_MAX));
  };
  for (const std::string& name : dense) {
    if (const uint32_t count = rows(name)) pooling.dense_dims.push_back(count);
  }
  pooling.n_classes = rows(class_out);
  pooling.has_class_dense = pooling.n_classes != 0 && shape_of(class_dense);
  constexpr uint32_t kMostRows = 1u << 18;
  for (const uint32_t count : pooling.dense_dims) {
    if (count > kMostRows) {
      return fail(ErrorKind::kInvalidInput, "A Dense module has %u outputs; allowed is up to %u.", count,
                  kMostRows);
    }
  }
  return {};
}

}  // namespace

Result<void> read_pooling(const Json& json, const ShapeLookup& shape_of, ModelConfig& config) {
  PoolingConfig& pooling = config.pooling;
  const bool is_encoder = architecture_of(config).bidirectional;
  DP_CHECK(set_dims(shape_of, {"dense.0.linear.weight", "dense.1.linear.weight"},
                    config.huggingface_prefix + "pooler.dense.weight", "classifier.weight", pooling));
  if (!is_encoder) pooling.n_classes = 0;  // other heads than this are not known
  if (pooling.n_classes != 0 && shape_of("head.dense.weight")) {
    return fail(
        ErrorKind::kUnsupported,
        "A class head with a norm (tensor \"head.dense.weight\") is not supported; supported is BERT's.");
  }
  if (const Json* modules = find(json, kEmbeddingModules)) {
    DP_TRY(const auto name, get_string(*modules, "pooling"));
    DP_TRY(const auto normalise, get_bool(*modules, "normalize"));
    for (const Pooling kind : {Pooling::kMean, Pooling::kCls, Pooling::kLast}) {
      if (name == pooling_name(kind)) pooling.kind = kind;
    }
    pooling.normalise = normalise.value_or(false);
  } else if (pooling.n_classes != 0) {
    pooling.kind = Pooling::kCls;
  }
  if (pooling.n_classes != 0) {
    pooling.normalise = false;
  } else {
    pooling.has_class_dense = false;
  }
  if (is_embedding_model(config)) config.tied_embeddings = true;  // there is no head
  return {};
}

Result<void> read_pooling(const GgufKeys& keys, const ShapeLookup& shape_of, ModelConfig& config) {
  PoolingConfig& pooling = config.pooling;
  DP_CHECK(
      set_dims(shape_of, {"dense_2.weight", "dense_3.weight"}, "cls.weight", "cls.output.weight", pooling));
  DP_TRY(const auto given, keys.count("pooling_type"));
  const uint32_t kind = given.value_or(0);
  if (kind > kRank) {
    return fail(ErrorKind::kUnsupported, "Key \"%s.pooling_type\" is %u; allowed is 0 to %u.",
                config.architecture.c_str(), kind, kRank);
  }
  const bool is_encoder = architecture_of(config).bidirectional;
  if (kind == kRank) {
    if (pooling.n_classes == 0) {
      return fail(ErrorKind::kInvalidInput,
                  "The model scores texts, but has no tensor \"cls.output.weight\".");
    }
    pooling.kind = is_encoder ? Pooling::kCls : Pooling::kLast;
    pooling.normalise = false;
  } else {
    pooling.kind = kind == 0 && is_encoder ? Pooling::kMean : static_cast<Pooling>(kind);
    pooling.n_classes = 0;
    pooling.has_class_dense = false;
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
