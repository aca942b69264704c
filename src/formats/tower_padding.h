// Kernels for tiles and matrix units read whole units of 32 columns, and a tower's feed-forward layers often have no
// such number (SigLIP's have 4,304). A tower is loaded with further columns: their weights and biases are 0, and every
// activation of 0 is 0, so the results stay the same.
#pragma once

#include <memory>

#include "formats/architectures/config.h"
#include "formats/checkpoint.h"

namespace doppler::formats {

// The width with which a feed-forward layer of `dim` is loaded: whole pairs of tiles.
uint32_t padded_feed_forward(uint32_t dim);

// Gives the tower's tensors that width. `tower` is as read_tower() gives it. Only once for a checkpoint.
void pad_feed_forward(Checkpoint& checkpoint, const ModelConfig& tower);

// `rows` rows of `row_bytes` from `offset` of a file, each followed by zeros up to `padded_bytes`. The file must
// outlive the result.
std::unique_ptr<ByteSource> padded_rows(ByteSource& file, uint64_t offset, uint64_t rows, uint64_t row_bytes,
                                        uint64_t padded_bytes);

}  // namespace doppler::formats
