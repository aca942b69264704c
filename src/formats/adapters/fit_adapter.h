// Compares an adapter with a base model. It says which matrix of the model each tensor adapts, and puts B's rows into
// the order of the model's file. Adapter and model may be of different kinds of file.
#pragma once

#include <optional>

#include "formats/adapters/adapter.h"
#include "formats/architectures/config.h"
#include "formats/tensor_id.h"

namespace doppler::formats {

// An adapter's change of one matrix of a layer. Matrices that a file fuses share their A.
struct FittedMatrix {
  TensorId tensor = TensorId::kQ;
  uint32_t layer = 0;  // 0 outside the layers
  uint32_t rank = 0;   // 0: only biases are replaced
  uint64_t n = 0, k = 0;
  std::vector<float> a, b;  // [rank, k], [n, rank]
  float scale = 1;
  std::vector<float> bias, magnitude;  // as AdaptedTensor has them
  std::vector<float> replaced_bias;    // [n] or empty: takes the place of the matrix's own bias
  std::string label;                   // for messages: the adapter's name of it
};

struct FittedAdapter {
  std::string name;
  uint32_t serial = 0;  // each fit_adapter() gives another one
  std::vector<FittedMatrix> matrices;
  std::optional<FittedMatrix> embedding;  // n columns, k tokens
  std::vector<ReplacedTensor> replaced;   // by the names of the model's file; not biases of matrices
  std::vector<uint32_t> invocation_tokens;

  uint32_t rank() const;
};

// Errors name the first tensor that the model lacks or has in another size.
Result<FittedAdapter> fit_adapter(const Adapter& adapter, const ModelConfig& model);

}  // namespace doppler::formats
