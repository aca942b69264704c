// Sizes of the dispatches of a few rows of x times a weight: what the shaders of this folder have as constants.
// For matmul_skinny.cpp.
#pragma once

#include <algorithm>

#include "kernels/linear/product.h"

namespace doppler::kernels {

inline constexpr uint32_t kVec4Bytes = 16;
inline constexpr uint32_t kMostPair = 4;  // few_four_rows

// The constants of matmul_skinny.wgsl under the same names, and of matmul_skinny_cpu.wgsl, which has only rows and
// pair.
struct SkinnyShape {
  uint32_t units = 0;
  uint32_t batch = 2;
  uint32_t rows = kTileRows;
  uint32_t pair = 1;  // weight rows of an invocation: 1, 2, in matmul_few kMostPair too
  uint32_t slices = 1;
  uint32_t depth = 1;
  uint32_t x_vec4s = 3;
  uint32_t chunk = 0;                    // units of x at a time, of matmul_few
  uint32_t splits = 1, split_units = 0;  // of the columns, likewise
  bool gated = false, q8_out = false;

  uint32_t unit_bytes() const { return batch * x_vec4s * kVec4Bytes; }  // of x in workgroup memory
  uint32_t threads() const { return rows * slices; }
  uint32_t group_rows() const { return gated ? rows * pair / 2 : rows * pair; }
  // A subgroup of 32 reads more than one unit of x at once.
  uint32_t padding() const { return rows < kTileRows ? 1 : 0; }
  uint32_t shared_vec4s() const {
    const uint32_t x = chunk != 0 ? chunk * batch * x_vec4s : slices * depth * (batch * x_vec4s + padding());
    return std::max(x, threads() * std::min(pair, 2u));
  }
  uint32_t block_values() const { return q8_out ? batch * group_rows() : 1; }
  uint32_t bytes() const { return shared_vec4s() * kVec4Bytes + block_values() * 4; }
};

// The shape of matmul_skinny.wgsl, matmul_few.wgsl and matmul_skinny_cpu.wgsl.
SkinnyShape skinny_shape(Context& ctx, const Product& op);
SkinnyShape few_shape(Context& ctx, const Product& op);
SkinnyShape cpu_shape(Context& ctx, const Product& op);

}  // namespace doppler::kernels
