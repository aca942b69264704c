// The products of low-rank adapters (LoRA, Hu et al. 2021): low = A x, then y = gain * y + B low + constant, both with
// the matrices of the adapter that the row has. Rows of several adapters and of none share a dispatch, which leaves
// rows of none as they are. Matrices that read the same x have their A's below one another and one `low`.
// The arena: matrices of `slots` adapters one after another, ranks padded with zeros to `rank`. Scales are in B.
// Error bound: f32 arithmetic, relative L2 < 1e-5 against double precision.
#pragma once

#include <cstdint>
#include <vector>

#include "base/activation_fn.h"
#include "kernels/common/forms.h"
#include "kernels/context.h"

namespace doppler::kernels {

// A row has the adapter of its sequence (0 none, s the arena's slot s - 1), if the row's position is not before
// `from`.
struct AdapterOfSequence {
  uint32_t adapter = 0, from = 0;
};
struct AdapterRows {
  TensorView
      adapters;  // AdapterOfSequence [sequences]: of each slot of the step tables; of plans of one sequence [1]
  TensorView state;       // the step state, in plans of many sequences with its tables
  bool selected = false;  // rows are those that choose a token: of one sequence the step's last
};

inline constexpr uint32_t kRankStep = 4;             // ranks are padded to multiples of it
inline constexpr uint32_t kMostLowRankFewRows = 16;  // beyond them rows are made in tiles
inline constexpr uint32_t kMostAdaptedMatrices = 4;  // that read one x

// x: f32 rows, or a norm of one row whose division is left to its reader.
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

// B, and what its rows are multiplied with: a row of `low`, or of an embedding the token's row of A.
struct LowRankUp {
  TensorView low;     // f32 [rows, matrices * rank]; of an embedding f32 [slots, vocabulary, rank]
  TensorView tokens;  // u32 [rows]: of an embedding; else invalid
  TensorView b;       // vec4 of f32 [slots, b_vec4s(rank, is_affine), n]
  TensorView y;       // f32 [rows, y_stride]: columns [0, n)
  uint32_t n = 0, y_stride = 0, rank = 0, slots = 0;
  uint32_t vocab_size = 0;     // of an embedding
  std::vector<uint32_t> ends;  // of each matrix's columns; one: all
  bool is_affine = false;      // gain and constant are the last vec4 of each output: (gain, constant, 0, 0)
  AdapterRows adapters;

  static uint32_t b_vec4s(uint32_t rank, bool is_affine) { return rank / 4 + (is_affine ? 1 : 0); }
};
Result<void> record(Context& ctx, const LowRankUp& op);

// The same of a product of gates and ups, and y = activate(gate) * up in one dispatch (glu/glu.h). up.y is what the
// product stored, f32 [rows, 2 * n]: gates, then ups, and is only read.
struct LowRankGate {
  LowRankUp up;
  Rows y;  // [rows, n] in the forms that are valid; without f16, f32 is one of them
  ActivationFn activate = ActivationFn::kSilu;
};
Result<void> record(Context& ctx, const LowRankGate& op);

}  // namespace doppler::kernels
