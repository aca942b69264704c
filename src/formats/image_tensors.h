// Tensors of vision towers that files have in other shapes than the architectures' rows.
#pragma once

#include <memory>
#include <vector>

#include "formats/checkpoint.h"

namespace doppler::formats {

// A convolution whose kernels do not overlap is a product with a patch's values: its weight [n, channels, ..., y, x] becomes
// the matrix [n, channels * ... * y * x]. Gemma 3's projection is stored [k, n], and becomes [n, k] under a weight's name. The
// merging of Mistral 3 reads the patches of a token value by value, and becomes one that reads patch by patch.
void reshape_image_tensors(std::vector<std::unique_ptr<ByteSource>>& sources, std::vector<TensorInfo>& tensors);

}  // namespace doppler::formats
