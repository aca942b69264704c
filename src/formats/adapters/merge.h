// Merges adapters into the weights of a model, for users who want one file. Each row that is read becomes W + s B A, or
// what DoRA makes of it, in the number type of the tensor. Read next: convert/convert_native.h, which reads it.
#pragma once

#include <memory>

#include "formats/adapters/fit_adapter.h"

namespace doppler::formats {

// Makes the checkpoint give weights with the adapter's changes from now on. Error: a file of the model cannot hold the
// adapter (one of the embedding, in a model whose output matrix is the embedding).
Task<Result<void>> merge_adapter(std::shared_ptr<const FittedAdapter> adapter, float scale,
                                 const ModelConfig& model, Checkpoint& checkpoint);

}  // namespace doppler::formats
