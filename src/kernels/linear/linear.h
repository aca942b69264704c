// y = x W^T, the operation that takes nearly all the time: matvec for one row, matmul_skinny for a few, matmul_narrow
// for some more, matmul for a prefill chunk, chosen by ctx.max_rows. Weights are read as stored (base/dtype.h lists the
// formats). The work on x before the product (prologue) and on the sums after it (epilogue) is part of the call; a
// variant says which kinds it has, with reasons.
// Error bound: f32 arithmetic, relative L2 < 1e-5 against double precision on the same weights; dp4a variants the same
// against an oracle that quantises the activations likewise. Matrix variants: below 3e-5 against one that rounds x and
// the weights to f16 likewise (the units round each of their sums towards zero, so that it grows with k: 2e-6 at 2,048
// columns, 2e-5 at 14,336).
//
//   DP_TRY(const ProductChoice choice, resolve_product(ctx, weight));            // once
//   if (refuse_epilogue(ctx, weight, choice, EpilogueKind::kDeferredNorm).empty()) ...
//   DP_CHECK(record(ctx, choice, Linear{.weight = weight, .x = rows, .y = AddResidual{.y = x}}));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/activation_fn.h"
#include "base/dtype.h"
#include "kernels/common/forms.h"
#include "kernels/context.h"

namespace doppler::kernels {

// Plans of more rows than one and at most so many have kernels of their own. More sums would not fit an invocation's
// registers.
inline constexpr uint32_t kMaxSkinnyRows = 16;
// Plans of more and at most so many likewise: a step of many sequences.
inline constexpr uint32_t kMaxNarrowRows = 64;

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

// x in some form, or the parts from which the product itself makes it.
using Prologue = std::variant<Rows, DeferredNorm, AddRmsNorm, SplitPartials>;
enum class PrologueKind : uint8_t { kRows, kDeferredNorm, kAddRmsNorm, kSplitPartials };

// y = sums. y: f32 [rows, n], or [rows, y_stride], in which this product writes the columns [y_column, y_column + n):
// so q, k and v of different formats fill one buffer.
struct Store {
  TensorView y;
  uint32_t y_stride = 0;  // 0: n
  uint32_t y_column = 0;
};
// y += sums: the residual. y: f32 [rows, n], or wider, as in Store.
struct AddResidual {
  TensorView y;
  uint32_t y_stride = 0;
  uint32_t y_column = 0;
};
// y += sums, and the norm that reads y next is deferred to its reader. One row of n.
struct AddResidualDeferNorm {
  TensorView y;
  DeferredNorm norm;
};
// The first n/2 rows are gates, the others ups: y = activation(gate) * up, [rows, n/2] in the forms that y has.
struct Gate {
  ActivationFn activation = ActivationFn::kSilu;
  Rows y;
};
// y = activation(sums), [rows, n] in the forms that y has: for feed-forward layers without gates. The activation is
// kSilu, kGeluTanh or kGeluErf.
struct ActivateSums {
  ActivationFn activation = ActivationFn::kGeluTanh;
  Rows y;
};
// y = x * activation(sums) of one row, without bias: a gate of another kernel's values. x f32 [n]; y [n] in the forms
// that it has. The activation is kSilu, kGeluTanh or kGeluErf.
struct GateOf {
  TensorView x;
  Rows y;
  ActivationFn activation = ActivationFn::kSilu;
};
// For logits: best_count() x u32 (key, row), the best output of each tile, the lowest row among equals
// (common/argmax_key.wgsl); and the logits themselves, f32 [n], if y is valid.
struct TileArgmax {
  TensorView best;
  TensorView y = {};
};
// The sums of each split of the columns, as left_sums() lays them out: the reader of y adds them up. Without bias.
struct LeaveSums {
  SplitSums sums;
};
using Epilogue =
    std::variant<Store, AddResidual, AddResidualDeferNorm, Gate, TileArgmax, GateOf, LeaveSums, ActivateSums>;
enum class EpilogueKind : uint8_t {
  kStore,
  kAddResidual,
  kDeferredNorm,
  kGate,
  kTileArgmax,
  kGateOf,
  kLeaveSums,
  kActivateSums
};

struct Linear {
  const Weight& weight;
  Prologue x;            // [rows, k]
  TensorView bias = {};  // optional f32 [n]; not with TileArgmax
  Epilogue y;
};

// The form in which a variant reads x, unless it makes x itself.
enum class InputForm : uint8_t { kF32, kQ8, kF16 };

struct ProductRow;  // linear/product.h

// The variant for a product of ctx.max_rows rows, chosen once: record() does not choose again.
struct ProductChoice {
  const ProductRow* row = nullptr;
  Choice choice;
  ActivationFn gate = ActivationFn::kNone;
  uint32_t max_rows = 1;

  InputForm reads() const;
};
// gate: not kNone where the epilogue is Gate.
Result<ProductChoice> resolve_product(const Context& ctx, const Weight& weight,
                                      ActivationFn gate = ActivationFn::kNone);
// Why the chosen variant does not have this prologue or epilogue; "" if it has.
std::string refuse_prologue(const Context& ctx, const Weight& weight, const ProductChoice& choice,
                            PrologueKind kind);
std::string refuse_epilogue(const Context& ctx, const Weight& weight, const ProductChoice& choice,
                            EpilogueKind kind);
// The layout of LeaveSums, without a buffer. Nothing if the variant writes y itself: it does not split the columns, or
// the weight has several pieces.
std::optional<SplitSums> left_sums(Context& ctx, const Weight& weight, const ProductChoice& choice);
// Errors: a refused prologue or epilogue, views that are missing or too small, columns that do not fit. May record more
// than one dispatch: pieces; a dispatch before or after it makes a form of x or y that the variant does not read or
// write itself.
Result<void> record(Context& ctx, const ProductChoice& choice, const Linear& op);

// Two products of the same rows of x, whose weights have different formats, in one dispatch: a row of y holds the
// first's outputs, then the second's.
struct LinearPair {
  const Weight& first;
  const Weight& second;
  Prologue x;
  TensorView bias;  // optional f32 [first.n + second.n]
  TensorView y;     // f32 [rows, first.n + second.n]
};
struct PairNeeds {
  PrologueKind prologue = PrologueKind::kRows;
  bool has_bias = false;
};
std::string refuse_pair(const Context& ctx, const Weight& first, const ProductChoice& first_choice,
                        const Weight& second, const ProductChoice& second_choice, const PairNeeds& needs);
Result<void> record(Context& ctx, const ProductChoice& first, const ProductChoice& second,
                    const LinearPair& op);

// Splits of attention that a product reduces (SplitPartials) at most.
inline constexpr uint32_t kMaxReducedSplits = 8;

// TileArgmax: how many there are, and the bytes of one.
uint32_t best_count(const Weight& weight);
inline constexpr uint64_t kBestBytes = 8;

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
