// A tensor whose stored layout no kernel and no loader reads (columns, rows or blocks that share a boundary) as
// one that all do: f32, row after row, unpacked as it is read. Slow and larger on the GPU, so it is said once.
#pragma once

#include <memory>

#include "formats/rdrr/manifest.h"
#include "formats/source.h"

namespace doppler::formats {

// Whether the stored bytes are whole blocks, row after row: then nothing needs to be unpacked.
bool is_row_major(const RdrrTensor& tensor);

// The f32 numbers of `tensor`, whose stored bytes begin at `position` of `shards`; both must outlive the source.
std::unique_ptr<ByteSource> make_unpacked(ByteSource& shards, uint64_t position, const RdrrTensor& tensor);

}  // namespace doppler::formats
