// Numbers as files store them <-> float. One small file per family of types; codec.cpp holds the table.
// dequantise() is bit-exact with the definition of each type (ggml's reference): same products, same order,
// no fused multiply-add. Block layouts are described at the top of each family's file. Read next: repack.h
// (what the GPU gets).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "base/result.h"

namespace doppler::formats {

// F32 F16 BF16 and every block type of base/dtype.h; not the integers, F64 or bool.
bool can_dequantise(DType type);
// The same types.
bool can_quantise(DType type);
std::string quantisable_type_names();  // "f32, f16, ..." for messages

// `count` numbers, a multiple of the type's block, to `out`.
Result<> dequantise(DType type, const uint8_t* blocks, float* out, size_t count);

// Nearest even for F16 and BF16. Block types: codes and scales found by a search that minimises the squared
// error weighted with (root mean square + |x|), so that large weights, which carry the signal, are kept best.
// `importance`, `count` numbers of 0 or more, multiplies those; null: all alike. F32, F16, BF16 and Q8_0 have no use
// for it. Input must be finite. Any number of threads may call it.
Result<> quantise(DType type, const float* x, uint8_t* out, size_t count, const float* importance = nullptr);

// Bytes of `count` numbers (a multiple of the block).
inline uint64_t bytes_of(DType type, uint64_t count) {
  const DTypeInfo& info = dtype_info(type);
  return count / info.block_size * info.block_bytes;
}

}  // namespace doppler::formats
