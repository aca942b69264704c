// A matrix of activations [rows, k]: always f32, and optionally also quantised to 8 bits for the dp4a lane by
// the kernel that produced it, so that nobody reads it twice.
#pragma once

#include <cstdint>

#include "kernels/context.h"

namespace doppler::kernels {

struct Activation {
  TensorView f32;  // [rows, k] f32, row stride exactly k
  TensorView q8;   // invalid, or q8_bytes(rows, k) bytes, see below; only when k is a multiple of 32
};

// Layout of q8: plane 0 holds, per row and block of 32, 32 int8 (8 u32 words, element 4i+j in byte j of word
// i); plane 1 begins at the next multiple of 256 bytes after the rows of max_rows and holds, per row and
// block, vec2<f32>(d, d * sum of the 32 int8). Value = d * q, d = max|x| / 127, q rounded to nearest even.
inline uint64_t q8_plane1_offset(uint32_t max_rows, uint32_t k) {
  return (static_cast<uint64_t>(max_rows) * k + 255) / 256 * 256;
}
inline uint64_t q8_bytes(uint32_t max_rows, uint32_t k) {
  return q8_plane1_offset(max_rows, k) + static_cast<uint64_t>(max_rows) * (k / 32) * 8;
}

}  // namespace doppler::kernels
