// The products of low-rank adapters (LoRA, Hu et al. 2021): low = A x, then y = gain * y + B low + constant. Both have
// the matrices of the row's adapter. Rows of several adapters and rows without one share a dispatch, which does not
// change the rows without one. Matrices that read the same x have their A's below one another and share one `low`.
// The arena holds the matrices of `slots` adapters one after another, with ranks padded by zeros to `rank`. Scales are
// in B.
// Error bound: f32 arithmetic, relative L2 < 1e-5 against double precision.
#pragma once

#include <cstdint>
#include <vector>

#include "base/activation_fn.h"
#include "kernels/common/forms.h"
#include "kernels/context.h"

namespace doppler::kernels {

// A row has the adapter of its sequence, if the row's position is `from` or later. 0 is no adapter, and s is the
// arena's slot s - 1.
struct AdapterOfSequence {
  uint32_t adapter = 0, from = 0;
};
struct AdapterRows {
  TensorView
      adapters;  // AdapterOfSequence: an entry for each slot of the step tables; one in plans of one sequence
  TensorView state;       // the step state; in plans of many sequences with its tables
  bool selected = false;  // rows are those that choose a token; of one sequence the step's last
};

inline constexpr uint32_t kRankStep = 4;             // ranks are padded to multiples of it
inline constexpr uint32_t kMostLowRankFewRows = 64;  // more rows are made in tiles
inline constexpr uint32_t kMostAdaptedMatrices = 4;  // that read one x

// x: f32 rows, or a norm of one row that its reader divides.
struct LowRankDown {
  const Rows* rows_x = nullptr;
  const DeferredNorm* deferred_x = nullptr;  // one of the two
  TensorView a;                              // f32 [slots, width, padded_k(k)]
  TensorView low;                            // f32 [rows, width]
  uint32_t k = 0, width = 0, slots = 0;      // width: matrices * rank
  AdapterRows adapters;

  static uint32_t padded_k(uint32_t k) { return (k + 3) / 4 * 4; }
};
Result<void> record(Context& ctx, const LowRankDown& op);

// B, and the numbers that its rows are multiplied with: a row of `low`, or for an embedding the token's row of A.
struct LowRankUp {
  TensorView low;     // f32 [rows, matrices * rank]; of an embedding f32 [slots, vocabulary, rank]
  TensorView tokens;  // u32 [rows] of an embedding, or invalid
  TensorView b;       // vec4 of f32 [slots, b_vec4s(rank, is_affine), n]
  TensorView y;       // f32 [rows, y_stride]: columns [0, n)
  uint32_t n = 0, y_stride = 0, rank = 0, slots = 0;
  uint32_t vocab_size = 0;     // of an embedding
  std::vector<uint32_t> ends;  // the ends of each matrix's columns; one entry: all
  bool is_affine = false;      // gain and constant are the last vec4 of each output: (gain, constant, 0, 0)
  AdapterRows adapters;

  static uint32_t b_vec4s(uint32_t rank, bool is_affine) { return rank / 4 + (is_affine ? 1 : 0); }
};
Result<void> record(Context& ctx, const LowRankUp& op);

// LowRankUp for a product of gates and ups, and y = activate(gate) * up in the same dispatch (glu/glu.h). up.y is what
// the product stored, f32 [rows, 2 * n], gates and then ups; the kernel only reads it.
struct LowRankGate {
  LowRankUp up;
  Rows y;  // [rows, n] in the valid forms; f32 must be valid unless f16 is
  ActivationFn activate = ActivationFn::kSilu;
};
Result<void> record(Context& ctx, const LowRankGate& op);

}  // namespace doppler::kernels
