// Numbers as files store them <-> float. One small file per family of types; codec.cpp holds the table.
// dequantise() is bit-exact with the definition of each type (ggml's reference): same products, same order,
// no fused multiply-add. Block layouts are described at the top of each family's file. Read next: repack.h
// (what the GPU gets).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/result.h"

namespace doppler::formats {

// F32 F16 BF16 and every block type of base/dtype.h; not the integers, F64 or bool.
bool can_dequantise(DType type);
// F32 F16 BF16 Q8_0 Q4_0 Q4_K Q5_K Q6_K.
bool can_quantise(DType type);

// `count` numbers, a multiple of the type's block, to `out`.
Result<> dequantise(DType type, const uint8_t* blocks, float* out, size_t count);

// Nearest even for F16 and BF16. Block types: codes and scales found by a search that minimises the squared
// error weighted with (root mean square + |x|), so that large weights, which carry the signal, are kept best.
// Input must be finite.
Result<> quantise(DType type, const float* x, uint8_t* out, size_t count);

// Bytes of `count` numbers (a multiple of the block).
inline uint64_t bytes_of(DType type, uint64_t count) {
  const DTypeInfo& info = dtype_info(type);
  return count / info.block_size * info.block_bytes;
}

}  // namespace doppler::formats
