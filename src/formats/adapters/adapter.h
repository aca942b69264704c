// A low-rank adapter (LoRA, Hu et al. 2021) in memory, from any kind of file. It changes the product of a matrix W of
// the base model to W x + scale * B (A x). Names of tensors are those of the file; fit_adapter.h finds the model's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "formats/source.h"

namespace doppler::formats {

inline constexpr uint32_t kMostAdapterRank = 1024;  // published adapters have 4 to 256

struct AdaptedTensor {
  std::string tensor;  // of the base model, without suffix: "model.layers.0.self_attn.q_proj", "blk.0.attn_q"
  uint32_t rank = 0;
  uint64_t n = 0, k = 0;  // outputs and inputs of the matrix; of an embedding its columns and the vocabulary
  std::vector<float> a;   // [rank, k]
  std::vector<float> b;   // [n, rank]
  float scale = 1;        // of the product, and of `bias`
  std::vector<float> bias;       // [n] or empty
  std::vector<float> magnitude;  // [n] or empty: of each output row (DoRA, Liu et al. 2024)
  bool is_embedding = false;     // the row of token t gets scale * B times column t of A
};

// A whole tensor that takes the place of the base model's. Modules that were trained whole have these, and biases.
struct ReplacedTensor {
  std::string tensor;           // with its suffix
  std::vector<uint64_t> shape;  // outermost first
  std::vector<float> values;
};

struct Adapter {
  std::string name;  // for messages: the path
  std::string base;  // what the file says of its base model; may be empty
  bool gguf_names = false;
  std::vector<AdaptedTensor> tensors;
  std::vector<ReplacedTensor> replaced;
  // These tokens switch an adapter on (aLoRA): it is in force from their last place in a prompt. Empty: everywhere.
  std::vector<uint32_t> invocation_tokens;

  uint32_t rank() const;     // the largest
  uint64_t numbers() const;  // in all tensors
};

// Says whether these files look like an adapter and not like a model.
Task<Result<bool>> is_adapter(FileSet& files);

// Opens a PEFT folder (adapter_config.json and adapter_model.safetensors), one of these two files, or a GGUF file whose
// general.type is adapter. Errors: a feature that is not supported, by its name; sizes that do not belong together.
Task<Result<Adapter>> open_adapter(std::unique_ptr<FileSet> files);

}  // namespace doppler::formats
