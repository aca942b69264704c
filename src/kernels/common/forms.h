// The forms in which a matrix of activations [rows, k] may lie in GPU memory, so that it is stored in the form that its
// readers need: producers write these and products read them (linear/linear.h). Lowering (src/lowering) chooses the
// form of each value.
#pragma once

#include <cstdint>

#include "kernels/context.h"

namespace doppler::kernels {

// The whole matrix, in one form or several. A producer writes only the forms that it is given.
struct Rows {
  TensorView f32 = {};  // [rows, k] f32, row stride exactly k
  TensorView q8 = {};   // q8_bytes(rows, k) bytes, see below; k is a multiple of 32
  TensorView f16 = {};  // f16_bytes(rows, k) bytes, see below; k is a multiple of 16
};

// Layout of q8: plane 0 holds, per row and block of 16, 16 int8 (4 u32 words, element 4i+j in byte j of word
// i); plane 1 begins at the next multiple of 256 bytes after the rows of max_rows and holds, per row and
// block, vec2<f32>(d, d * sum of the 16 int8). Value = d * q, d = max|x| / 127, q rounded to nearest even.
// Blocks of 16, not the 32 of weights, so that a workgroup which makes 16 outputs makes whole blocks: products of few
// rows then have enough workgroups for a large GPU.
inline constexpr uint32_t kQ8Block = 16;
inline uint64_t q8_plane1_offset(uint32_t max_rows, uint32_t k) {
  return (static_cast<uint64_t>(max_rows) * k + 255) / 256 * 256;
}
inline uint64_t q8_bytes(uint32_t max_rows, uint32_t k) {
  return q8_plane1_offset(max_rows, k) + static_cast<uint64_t>(max_rows) * (k / kQ8Block) * 8;
}

// Layout of f16: tiles of 16 rows by 16 columns, which a matrix unit loads as one; tile number (row / 16) * (k / 16) +
// column / 16 is 256 f16, row after row. The middle two of every four columns are exchanged: 0, 2, 1, 3, the order in
// which packed weights come out of their words. Numbers beyond +-65504 become that.
inline uint64_t f16_bytes(uint32_t max_rows, uint32_t k) {
  return (static_cast<uint64_t>(max_rows) + 15) / 16 * 16 * k * 2;
}

// Deferred RMSNorm of one row: the product that makes x leaves x * weight and the sums of x^2 of each block of 16, and
// the product that reads the norm multiplies its own sums by 1 / sqrt(mean(x^2) + eps). `buffer` holds x * weight, in
// 8 bits or f32, and from the next multiple of 256 bytes on the sums, f32 [k / 16].
struct DeferredNorm {
  TensorView buffer;  // bytes(k, q8)
  TensorView weight;  // f32 [k]
  uint32_t k = 0;
  float eps = 0;
  bool q8 = false;

  static uint64_t sums_offset(uint32_t k, bool q8) {
    return ((q8 ? q8_bytes(1, k) : 4ull * k) + 255) / 256 * 256;
  }
  static uint64_t bytes(uint32_t k, bool q8) { return sums_offset(k, q8) + k / kQ8Block * 4ull; }
  TensorView values() const { return buffer.sub(0, q8 ? q8_bytes(1, k) : 4ull * k); }
  TensorView square_sums() const { return buffer.sub(sums_offset(k, q8), k / kQ8Block * 4ull); }
};

// Add + RMSNorm of one row, which the product that reads it still has to make, if norms stand after the branches
// (Gemma):
//   x = residual + branch / sqrt(mean(branch^2) + eps) * add_weight
// The reader makes x, and writes it, and its input is the norm of x by `weight`.
struct AddRmsNorm {
  TensorView residual, branch;    // f32 [k]
  TensorView add_weight, weight;  // f32 [k]
  TensorView x;                   // f32 [k], another buffer than residual: some still read that one
  float eps = 0;
};

// One row of attention in splits of the keys (split-K, flash-decoding); its reader reduces them. Layout of the partial
// results: attention/attention_output_partial.wgsl. The step's position decides in which splits the row sees no keys:
// these splits are not written, and their place holds anything.
struct SplitPartials {
  TensorView partials;  // bytes()
  uint32_t splits = 0, keys_per_split = 0;
  uint32_t n_heads = 0, head_dim = 0;  // k is n_heads * head_dim, head_dim a multiple of kQ8Block
  uint32_t ctx_len = 0, window = 0;    // as in Attention

  // Rows of whole vectors of eight floats and pairs, in whole vectors of four.
  uint64_t bytes() const { return (uint64_t{splits} * n_heads * ((head_dim + 7) / 8 * 8 + 2) + 3) / 4 * 16; }
};

// A product's sums of each split of the columns, still to be added up: f32 [splits][rows][row_stride]. The first
// numbers of a row are outputs. Strides in numbers, multiples of four.
struct SplitSums {
  TensorView partials = {};  // bytes()
  uint32_t splits = 0, row_stride = 0, split_stride = 0;

  uint64_t bytes() const { return uint64_t{splits} * split_stride * sizeof(float); }
};

// One normalised row in one buffer, in 8 bits if somebody reads those and in f32, for kernels with no binding to spare.
struct NormedRow {
  TensorView buffer;  // bytes(k)
  uint32_t k = 0;
  bool q8 = false;  // somebody reads 8 bits

  static uint64_t f32_offset(uint32_t k) { return k % 32 != 0 ? 0 : (q8_bytes(1, k) + 255) / 256 * 256; }
  static uint64_t bytes(uint32_t k) { return f32_offset(k) + 4ull * k; }
  Rows rows() const {
    return {.f32 = buffer.sub(f32_offset(k), 4ull * k),
            .q8 = q8 ? buffer.sub(0, q8_bytes(1, k)) : TensorView{}};
  }
};

}  // namespace doppler::kernels
