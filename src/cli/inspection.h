// The findings of `doppler inspect` about a model file, before they become text (inspect.cpp) or JSON
// (inspect_json.cpp). Gathered from headers and tables: no weights are read and no GPU is opened.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/loaded_model.h"

namespace doppler::cli {

struct TypeShare {
  uint64_t tensors = 0, parameters = 0, bytes = 0;
};

struct Inspection {
  std::unique_ptr<formats::Checkpoint> checkpoint;
  Result<formats::ModelConfig> config = formats::ModelConfig();  // error: why this build cannot run the model
  engine::TextModel text;
  std::map<std::string, TypeShare> types;  // by the name of the number type
  TypeShare total;
  // The three below are for the requested context, and are set only with a config.
  uint32_t ctx_len = 0;
  std::string kv;
  model::MemoryEstimate memory;
};

// Elements of long arrays that are shown.
inline constexpr uint64_t kShownElements = 8;

// Token name ("bos") and id of each special token that the vocabulary has.
std::vector<std::pair<const char*, int32_t>> special_tokens(const tokenizer::Tokenizer& tokenizer);
std::string rope_text(const formats::RopeConfig& rope);  // "theta 500000, llama3 scaling by 32"
const char* rope_scaling_name(formats::RopeScaling scaling);
const char* rope_pairing_name(formats::RopePairing pairing);
std::string shape_text(const std::vector<uint64_t>& shape);  // "4096 x 14336"
uint64_t parameters_of(const formats::TensorInfo& tensor);

Json inspection_json(const Inspection& found);

// `doppler inspect --architectures`.
void print_architectures(bool json);

// The whole of `doppler inspect MODEL`, for `show`.
Result<Inspection> inspect_model(const std::string& model);
void print_inspection(const Inspection& found);

}  // namespace doppler::cli
