// Adapters merged into the weights of a model, for those who want one file: W + s B A, or DoRA's, of every row that is read,
// in the number type that the tensor has. Read next: convert/convert_native.h, which reads it.
#pragma once

#include <memory>

#include "formats/adapters/fit_adapter.h"

namespace doppler::formats {

// Puts the adapter's changes into what the checkpoint gives from now on. Errors: what a file of
// the model cannot hold (an adapter of the embedding of a model whose output matrix is the embedding).
Task<Result<void>> merge_adapter(std::shared_ptr<const FittedAdapter> adapter, float scale,
                                 const ModelConfig& model, Checkpoint& checkpoint);

}  // namespace doppler::formats
