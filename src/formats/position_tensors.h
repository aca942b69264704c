// Learned positions of RoBERTa's kind: a text's first token has the position after the id of padding, so that the first
// rows of the table are never used. The opened table begins with the first used row, as in GGUF files.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "formats/checkpoint.h"

namespace doppler::formats {

// The position of a text's first token, by config.json: 0 for models of other kinds.
Result<uint64_t> first_position(const Json& config);

// Leaves out the rows of the table before it. A table that has no more rows stays unchanged.
Result<> leave_out_unused_positions(std::vector<TensorInfo>& tensors, const Json& config);

}  // namespace doppler::formats
