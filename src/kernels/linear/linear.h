// y = x W^T, the operation that takes nearly all the time: matvec for one row, matmul_few for a few, matmul for a prefill
// chunk, chosen by ctx.max_rows. Weights are read as stored (base/dtype.h lists the formats), with optional
// epilogues. Error bound: f32 arithmetic, relative L2 < 1e-5 against double precision on the same weights;
// dp4a variants the same against an oracle that quantises the activations likewise. Matrix variants: below 3e-5
// against one that rounds x and the weights to f16 likewise (the units round each of their sums towards zero, so that
// it grows with k: 2e-6 at 2,048 columns, 2e-5 at 14,336).
#pragma once

#include <cstdint>
#include <vector>

#include "base/activation_fn.h"
#include "base/dtype.h"
#include "kernels/common/activation.h"
#include "kernels/context.h"

namespace doppler::kernels {

// Plans of more rows than one and at most so many have kernels of their own. More sums would not fit an invocation's
// registers.
inline constexpr uint32_t kMostFewRows = 16;

// Whole rows of a weight matrix in one GPU buffer (layout: base/dtype.h). More than one piece when the matrix
// is larger than a binding may be.
struct WeightPiece {
  TensorView buffer;
  uint32_t first_row = 0;
  uint32_t rows = 0;
};

struct Weight {
  WeightFormat format = WeightFormat::kF32;
  uint32_t n =
      0;  // rows: outputs. Several matrices that take the same input may be stacked (q,k,v; gate,up).
  uint32_t k = 0;                   // columns: inputs
  std::vector<WeightPiece> pieces;  // in order, covering [0, n)
};

struct Linear {
  const Weight& weight;
  Activation x;             // [rows, k]
  TensorView y;             // f32 [rows, n]; with `gate`: [rows, n/2], optional if y_q8 is all that is read
  TensorView y_q8;          // optional: y also as q8 (common/activation.h); only with `gate`
  TensorView y_f16;         // likewise in f16 tiles
  bool y_only_f16 = false;  // y itself may be left unwritten
  TensorView bias;          // optional f32 [n]
  bool accumulate = false;  // y += ... instead of y = ...: the residual
  // Not kNone: the first n/2 rows are gates, the others ups: y = activate(gate) * up.
  ActivationFn gate = ActivationFn::kNone;
  // Where y's n columns lie in wider rows, so that q, k and v of different formats fill one buffer: y is then
  // [rows, y_stride], and this product writes columns [y_column, y_column + n). 0: y_stride is n.
  uint32_t y_stride = 0;
  uint32_t y_column = 0;
  // Optional, with accumulate, where begins_norm() says so: the norm that reads y next is begun.
  BegunNorm next;
  // Optional, for logits, where leaves_best() says so: best_count() x u32 (key, row) of the best output of each tile,
  // the lowest row among equals (common/argmax_key.wgsl). y is then optional. Without bias, accumulate and y_stride.
  TensorView best;
};
// May record more than one dispatch (pieces, quantisation of x where a dp4a variant was chosen and x.q8 is
// missing, gate as a second kernel in prefill). Scratch it needs it takes from ctx.plan.
Result<void> record(Context& ctx, const Linear& op);

// Two products of the same row of x, whose weights have different formats, in one dispatch: y holds the first's
// outputs, then the second's. Where joins_pair() says so.
struct LinearPair {
  const Weight& first;
  const Weight& second;
  Activation x;
  TensorView y;  // f32 [first.n + second.n]
};
bool joins_pair(const Context& ctx, const Weight& first, const Weight& second);
Result<void> record(Context& ctx, const LinearPair& op);

// True if the variant that record() would choose reads x.q8: then the producer of x should write it too.
bool wants_q8(const Context& ctx, const Weight& weight, ActivationFn gate = ActivationFn::kNone);

// The same of x.f16.
bool wants_f16(const Context& ctx, const Weight& weight, ActivationFn gate = ActivationFn::kNone);

// True if record() would finish a begun norm of x itself (Activation::square_sums), for which x need not be there in
// any other form.
bool finishes_norm(const Context& ctx, const Weight& weight, ActivationFn gate = ActivationFn::kNone);
// True if record() would make x itself (Activation::joined); with a gate y is then q8 alone, without one `weight` and
// `second`, if there is one, are as for joins_pair().
bool joins_norm(const Context& ctx, const Weight& weight, const Weight* second,
                ActivationFn gate = ActivationFn::kNone);
// True if record() would join the splits of attention in its input (Activation::splits), of which there may be so many;
// without a gate and `best`.
inline constexpr uint32_t kMostJoinedSplits = 8;
bool joins_splits(const Context& ctx, const Weight& weight);
// True if record() would begin the norm that reads the product's sum (Linear::next).
bool begins_norm(const Context& ctx, const Weight& weight);
// True if record() would leave the best output of each tile (Linear::best), and how many those are.
bool leaves_best(const Context& ctx, const Weight& weight);
uint32_t best_count(const Weight& weight);
inline constexpr uint64_t kBestBytes = 8;  // one

// y[rows, k] -> q8, as a dispatch of its own.
struct QuantizeQ8 {
  TensorView x;  // f32 [rows, k]
  TensorView q8;
  uint32_t k = 0;
};
Result<void> record(Context& ctx, const QuantizeQ8& op);

// y[rows, k] -> f16 in tiles, as a dispatch of its own.
struct FragmentF16 {
  TensorView x;  // f32 [rows, k], k a multiple of 16
  TensorView f16;
  uint32_t k = 0;
};
Result<void> record(Context& ctx, const FragmentF16& op);

}  // namespace doppler::kernels
