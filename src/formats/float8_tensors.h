// Hugging Face folders may hold matrices of 8-bit floats (E4M3) beside their scales, as DeepSeek, Qwen and Ministral 3
// are published. The layers above know them as bf16, transformers' type for them; the bytes are made when they are
// read.
#pragma once

#include <memory>
#include <vector>

#include "base/json_fwd.h"
#include "formats/checkpoint.h"

namespace doppler::formats {

// Replaces each matrix of E4M3 numbers by one of bf16, w = number * scale rounded to nearest even, and drops its scales
// ("<name>_scale_inv" or "<name>_scale") and those of activations, which are not quantised here. Scales are one for the
// whole, one a row, or one a block of quantization_config's weight_block_size, else of 128 by 128. Models without such
// tensors stay unchanged. Errors: no scales; shapes that do not fit the matrix.
Result<void> widen_float8(std::vector<std::unique_ptr<ByteSource>>& sources, std::vector<TensorInfo>& tensors,
                          const Json& config);

}  // namespace doppler::formats
