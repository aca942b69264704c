// A tensor whose stored layout no kernel and no loader reads (columns, rows or blocks that share a boundary), as one
// that all read: f32, row after row, unpacked while it is read. It is slow and larger on the GPU, so one notice tells
// the user.
#pragma once

#include <memory>

#include "formats/rdrr/manifest.h"
#include "formats/source.h"

namespace doppler::formats {

// True if the stored bytes are whole blocks, row after row: then no unpacking is needed.
bool is_row_major(const RdrrTensor& tensor);

// The f32 numbers of `tensor`, whose stored bytes begin at `position` of `shards`; both must outlive the source.
std::unique_ptr<ByteSource> make_unpacked(ByteSource& shards, uint64_t position, const RdrrTensor& tensor);

}  // namespace doppler::formats
