// Tensors of vision towers that files have in other shapes than the architectures' rows.
#pragma once

#include <memory>
#include <vector>

#include "formats/checkpoint.h"

namespace doppler::formats {

// A convolution whose kernels do not overlap is a product with a patch's values: its weight [n, channels, ..., y, x]
// becomes the matrix [n, channels * ... * y * x]. Gemma 3's projection is stored transposed. The merging of Mistral 3
// reads the patches of a token value by value, and becomes one that reads patch by patch; so does GLM 4V's. The table
// of positions of a tower with a class token gets the token's embedding as a further row, and then the patches' bias
// if there is one. Gemma 4's two tables of positions become one, and the four limits of a matrix ("q_proj.input_min"
// and its like) a vector ("q_proj.limits"). The rows of its q and k are ordered as in other towers: a head's first
// pairs turn by the row.
void reshape_image_tensors(std::vector<std::unique_ptr<ByteSource>>& sources,
                           std::vector<TensorInfo>& tensors);

}  // namespace doppler::formats
