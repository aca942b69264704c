// doppler inspect --architectures: the rows of formats/architectures/ for a person, and as JSON, from which
// docs/reference/models.md is made.
#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "cli/inspection.h"
#include "cli/table.h"
#include "formats/architectures/architecture.h"

namespace doppler::cli {
namespace {

const char* dim_name(formats::Dim dim) {
  switch (dim) {
    case formats::Dim::kHidden:
      return "hidden_dim";
    case formats::Dim::kQRows:
      return "n_heads * head_dim";
    case formats::Dim::kKvRows:
      return "n_kv_heads * head_dim";
    case formats::Dim::kFfn:
      return "ffn_dim";
    case formats::Dim::kVocab:
      return "vocab_size";
    case formats::Dim::kHeadDim:
      return "head_dim";
    case formats::Dim::kHeads:
      return "n_heads";
    case formats::Dim::kExperts:
      return "n_experts";
    case formats::Dim::kExpertFfn:
      return "expert_dim";
    case formats::Dim::kExpertRow:
      return "expert_row_dim";
    case formats::Dim::kSharedFfn:
      return "shared_dim";
    case formats::Dim::kOne:
      return "1";
    case formats::Dim::kConvKernel:
      return "conv_kernel";
    case formats::Dim::kConvChannels:
      return "conv_channels";
    case formats::Dim::kConvInRows:
      return "3 * conv_channels";
    case formats::Dim::kKeyHeads:
      return "n_key_heads";
    case formats::Dim::kValueHeads:
      return "n_value_heads";
    case formats::Dim::kValueRows:
      return "n_value_heads * value_dim";
    case formats::Dim::kValueDim:
      return "value_dim";
    case formats::Dim::kDense1Rows:
      return "dense_dims[0]";
    case formats::Dim::kDense2Rows:
      return "dense_dims[1]";
    case formats::Dim::kPositionCount:
      return "ctx_len";
    case formats::Dim::kTypeCount:
      return "n_token_types";
    case formats::Dim::kClassCount:
      return "n_classes";
    case formats::Dim::kMambaInRows:
      return "n_value_heads * (value_dim + 1) + conv_channels";
    case formats::Dim::kLatentQRows:
      return "n_heads * (nope_dim + rope_dim)";
    case formats::Dim::kQRank:
      return "q_rank";
    case formats::Dim::kKvRank:
      return "kv_rank";
    case formats::Dim::kLatentRows:
      return "kv_rank + rope_dim";
    case formats::Dim::kNopeDim:
      return "nope_dim";
    case formats::Dim::kLatentValueDim:
      return "value_dim";
    case formats::Dim::kLatentValueRows:
      return "n_heads * value_dim";
    case formats::Dim::kLayerInput:
      return "layer_input_dim";
    case formats::Dim::kAllLayerInputs:
      return "n_layers * layer_input_dim";
    case formats::Dim::kLayerInputVocab:
      return "layer_input_vocab_size";
    case formats::Dim::kStreams:
      return "streams";
    case formats::Dim::kStreamPairs:
      return "streams^2";
    case formats::Dim::kLaurelRank:
      return "laurel_rank";
    case formats::Dim::kPatchValues:
      return "patch_values";
    case formats::Dim::kMerged:
      return "merged_patches * hidden_dim";
    case formats::Dim::kImageDim:
      return "image_dim";
    case formats::Dim::kProjector:
      return "projector_dim";
    case formats::Dim::kLimits:
      return "4";
    case formats::Dim::kTwoHidden:
      return "2 * hidden_dim";
  }
  return "?";
}

const char* window_name(formats::WindowRule rule) {
  switch (rule) {
    case formats::WindowRule::kNone:
      return "none";
    case formats::WindowRule::kAllLayers:
      return "all layers";
    case formats::WindowRule::kPattern:
      return "pattern";
    case formats::WindowRule::kUpperLayers:
      return "upper layers";
  }
  return "?";
}

Json tensor_json(const formats::Architecture& architecture, TensorId id) {
  const formats::TensorRow& row = formats::tensor_row(architecture, id);
  Json shape = Json::array();
  for (size_t i = 0; i < row.shape.size(); ++i) shape.push_back(dim_name(row.shape[i]));
  return {{"gguf", row.gguf},
          {"huggingface", row.huggingface},
          {"in_layer", is_in_layer(id)},
          {"in_next_layer", formats::is_of_next_layer(id)},
          {"shape", std::move(shape)}};
}

Json architecture_json(const formats::Architecture& row) {
  Json types = Json::array(), tensors = Json::array();
  for (const formats::HuggingFaceType& type : row.huggingface.model_types) {
    types.push_back({{"model_type", type.model_type}, {"sliding_window", window_name(type.window)}});
  }
  tensors.push_back(tensor_json(row, TensorId::kEmbedding));
  for (const TensorId id : row.model) tensors.push_back(tensor_json(row, id));
  for (const TensorId id : row.layer) tensors.push_back(tensor_json(row, id));
  for (const TensorId id : row.recurrent_layer) {
    if (std::ranges::find(row.layer, id) == row.layer.end()) tensors.push_back(tensor_json(row, id));
  }
  if (row.has_final_norm) tensors.push_back(tensor_json(row, TensorId::kFinalNorm));
  if (!row.bidirectional) tensors.push_back(tensor_json(row, TensorId::kOutput));
  using enum TensorId;
  for (const TensorId id : {kNextEmbeddingNorm, kNextHiddenNorm, kNextProjection, kNextNorm}) {
    if (row.has_next_layer) tensors.push_back(tensor_json(row, id));
  }
  Json names = Json::array();
  for (const std::string_view name : row.gguf.architectures) names.push_back(name);
  return {{"family", row.family},
          {"gguf",
           {{"architectures", std::move(names)},
            {"rope_pairing", rope_pairing_name(row.gguf.pairing.value)},
            {"sliding_window", window_name(row.gguf.window)}}},
          {"huggingface",
           {{"model_types", std::move(types)},
            {"rope_pairing", rope_pairing_name(row.huggingface.pairing.value)},
            {"norm_offset", row.huggingface.norm_offset},
            {"layers", row.huggingface.layers}}},
          {"tensors", std::move(tensors)}};
}

}  // namespace

const char* rope_pairing_name(formats::RopePairing pairing) {
  return pairing == formats::RopePairing::kNeox ? "NEOX" : "GPT-J";
}

void print_architectures(bool json) {
  Json list = Json::array();
  Table table({"family", "GGUF", "pairing", "Hugging Face", "pairing"});
  for (const formats::Architecture* row : formats::all_architectures()) {
    list.push_back(architecture_json(*row));
    std::string names, types;
    for (const std::string_view name : row->gguf.architectures) {
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
    for (const formats::HuggingFaceType& type : row->huggingface.model_types) {
      types += (types.empty() ? "" : ", ") + std::string(type.model_type);
    }
    table.add({std::string(row->family), names, rope_pairing_name(row->gguf.pairing.value), types,
               rope_pairing_name(row->huggingface.pairing.value)});
  }
  if (json) {
    std::printf("%s\n", to_text(Json{{"architectures", std::move(list)}}, 2).c_str());
  } else {
    std::printf("%s", table.text().c_str());
  }
}

}  // namespace doppler::cli
