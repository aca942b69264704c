// The dispatches that ceilings are measured with, one record() a figure; apart from ceiling.h for their
// tests.
#pragma once

#include "kernels/context.h"

namespace doppler::kernels {

// The work that fills a device: workgroups, invocations of each, rounds of 64 operations an invocation or of four
// products a subgroup.
struct CeilingShape {
  uint32_t groups = 1, workgroup = 64, rounds = 64;
};

// Vectors (vec4u) an invocation reads in one round of the read kernel.
inline constexpr uint32_t kReadUnroll = 4;

// Writes word i = i into `buffer`: memory that was never written, or holds one value, can read faster than it
// should.
struct CeilingFill {
  TensorView buffer;
  CeilingShape shape;  // rounds unused
};
Result<void> record(Context& ctx, const CeilingFill& op);

// Each invocation sums its share of `buffer`, lane by lane, into out[invocation] (vec4u). buffer.bytes must
// be a multiple of groups * workgroup * kReadUnroll * 16.
struct CeilingRead {
  TensorView buffer;
  TensorView out;  // groups * workgroup * 16 bytes
  CeilingShape shape;
  bool contiguous = false;  // a workgroup reads one range (CPU caches) instead of striding over the grid
};
Result<void> record(Context& ctx, const CeilingRead& op);

// Independent chains of multiply-adds in registers. seed[0..1]: multiplier and addend. f32: 64 fused
// multiply-adds a round of an invocation; dp4a: 64 times acc = dot4I8Packed(acc, seed[0]) + acc.
struct CeilingArithmetic {
  TensorView seed;  // 16 bytes
  TensorView out;   // groups * workgroup * 4 bytes
  CeilingShape shape;
  bool dp4a = false;
};
Result<void> record(Context& ctx, const CeilingArithmetic& op);

// Chains of products of 16 x 16 fragments, four a subgroup: a round is one product of each. For devices with matrix
// units (Caps::matrix_f16) whose subgroups have one size.
struct CeilingMatrix {
  TensorView seed;  // f16 [5, 16, 16]: a left fragment, four right ones
  TensorView out;   // f32 [subgroups of the grid, 4, 16, 16]
  CeilingShape shape;
};
Result<void> record(Context& ctx, const CeilingMatrix& op);

// One invocation adds 1 to a counter: the shortest dispatch that depends on the one before.
struct CeilingEmpty {
  TensorView counter;  // 16 bytes
};
Result<void> record(Context& ctx, const CeilingEmpty& op);

}  // namespace doppler::kernels
