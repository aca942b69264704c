// Shared by matvec, matmul_skinny, matmul_narrow and matmul: the shape that their tables decide by, the tables' rows,
// and one product as their recordings take it. Read next: matvec/variants.cpp, skinny/variants.cpp,
// narrow/variants.cpp, matmul/variants.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/linear/linear.h"
#include "kernels/linear/measured.h"
#include "kernels/variant.h"

namespace doppler::kernels {

struct ProductShape {
  WeightFormat format = WeightFormat::kF32;
  uint32_t n = 0, k = 0;
  uint32_t max_rows = 1;
  ActivationFn gate = ActivationFn::kNone;

  // Whole units of 32 columns, with no padding in the rows: what every kernel but the portable ones needs.
  bool whole_units() const { return k % 32 == 0 && k % weight_format_info(format).row_multiple == 0; }
};

enum class Algorithm : uint8_t {
  kTiled,
  kWholeRows,
  kSubgroup,
  kWorkgroup,
  kTile,
  kTileOfCpu,
  kSmallTile,  // few outputs
  kOnce,       // each weight unpacked once for a few rows of x
  kOnceOfCpu,
  kFew,  // likewise, with x staged seldom
  kMatrix,
  kNarrow,   // matrix units, for rows that fill no tile of kMatrix
  kGrouped,  // rows by expert (moe/)
  kGroupedMatrix,
  kPortable
};

// The settings of a row of a product's table.
struct ProductKernel {
  Algorithm algorithm = Algorithm::kPortable;
  bool q8 = false;   // reads x.q8
  bool f16 = false;  // reads x.f16
};
struct ProductRow : Variant<ProductShape>, ProductKernel {};

// Rows of one format, best first; names "matvec.q4_k.dp4a". The operation they are forced by: "matvec.q4_k".
std::span<const ProductRow> matvec_variants(WeightFormat format);
std::span<const ProductRow> matmul_skinny_variants(WeightFormat format);
std::span<const ProductRow> matmul_narrow_variants(WeightFormat format);
std::span<const ProductRow> matmul_variants(WeightFormat format);
std::string product_operation(const ProductShape& shape);
std::span<const ProductRow> product_variants(const ProductShape& shape);

// A row before it is repeated for every format that `quantised_only` lets through.
struct ProductTemplate {
  std::string_view suffix;  // "dp4a": the name without operation and format
  Lane lane = Lane::kPortable;
  uint32_t needs = 0;
  std::string (*refuse)(const ProductShape&, const gpu::Caps&) = nullptr;
  Algorithm algorithm = Algorithm::kPortable;
  bool q8 = false;     // such rows exist for quantised weights only
  bool tiled = false;  // such rows exist for tile formats only
  bool f16 = false;    // reads x.f16
  bool plain = false;  // such rows exist for weights that are not quantised only
};
// The table of each format, with names that live as long as the program.
std::vector<std::vector<ProductRow>> expand_templates(std::string_view operation,
                                                      std::span<const ProductTemplate> templates);

std::string refuse_unless_whole_units(const ProductShape& shape, const gpu::Caps& caps);
std::string refuse_unless_tiles(const ProductShape& shape, const gpu::Caps& caps);
// ... and x in 8-bit blocks fits workgroup memory beside the rest.
std::string refuse_unless_tiles_fit(const ProductShape& shape, const gpu::Caps& caps);
std::string refuse_unless_cpu(const ProductShape& shape, const gpu::Caps& caps);
std::string refuse_unless_eights(const ProductShape& shape, const gpu::Caps& caps);
std::string refuse_unless_cpu_and_eights(const ProductShape& shape, const gpu::Caps& caps);
// The limits of matmul_matrix.wgsl, besides kNeedMatrix.
std::string refuse_unless_matrix(const ProductShape& shape, const gpu::Caps& caps);
// The limits of matmul_small.wgsl.
std::string refuse_unless_small(const ProductShape& shape, const gpu::Caps& caps);
// The limits of matmul_few.wgsl.
std::string refuse_unless_few(const ProductShape& shape, const gpu::Caps& caps);
// refuse_unless_matrix, and there are rows enough for it, or no better way.
std::string refuse_unless_narrow(const ProductShape& shape, const gpu::Caps& caps);
inline constexpr uint32_t kNeedMatrix = kNeedMatrixF16 | kNeedF16 | kNeedSubgroups | kNeedTint;

// Questions about a chosen row.
inline bool writes_f16(const ProductRow& row) {
  return row.algorithm == Algorithm::kMatrix || row.algorithm == Algorithm::kNarrow;
}
inline bool writes_q8(const ProductRow& row) {
  return row.algorithm == Algorithm::kTiled || (row.algorithm == Algorithm::kOnce && row.q8) ||
         row.algorithm == Algorithm::kFew || row.algorithm == Algorithm::kNarrow;
}
inline bool splits_columns(const ProductRow& row) {
  return row.algorithm == Algorithm::kMatrix || row.algorithm == Algorithm::kNarrow ||
         row.algorithm == Algorithm::kFew;
}
inline bool is_tiled(const ProductChoice& choice) { return choice.row->algorithm == Algorithm::kTiled; }
inline std::string name_of(const ProductChoice& choice) { return std::string(choice.row->name); }

// The planes of a piece as bindings; `scales` is plane 0 again for a format without plane 1.
struct PieceViews {
  TensorView weights;
  TensorView scales;
};
PieceViews piece_views(const Weight& weight, const WeightPiece& piece);
uint64_t piece_bytes(const Weight& weight, const WeightPiece& piece);

// The second product of a LinearPair: its outputs follow the first's.
struct SecondProduct {
  const Weight& weight;
  const ProductRow& row;
};

// The place of a product's outputs, whatever else its epilogue does: [rows, stride], in which it writes the columns
// from `column` on. Forms that are invalid are not written.
struct Outputs {
  TensorView f32 = {}, q8 = {}, f16 = {};
  uint32_t stride = 0, column = 0;  // as in Store
  bool adds = false;                // to what is there
};
Outputs outputs_of(const Epilogue& epilogue);

// A Linear with the row chosen for it.
struct Product {
  const Weight& weight;
  const ProductRow& row;
  Choice& choice;  // for tunable()
  const Prologue& prologue;
  Rows x = {};  // in the form that the row reads; empty if the product makes x itself
  TensorView bias = {};
  Epilogue epilogue = {};                 // with the forms that the row writes
  const SecondProduct* second = nullptr;  // of a pair

  // Null if the product has another one.
  template <class T>
  const T* prologue_as() const {
    return std::get_if<T>(&prologue);
  }
  template <class T>
  const T* epilogue_as() const {
    return std::get_if<T>(&epilogue);
  }
  Outputs outputs() const { return outputs_of(epilogue); }
  bool is_gated() const { return epilogue_as<Gate>() != nullptr; }
  // The gates' or the sums'; kNone: there is none.
  ActivationFn activation() const {
    if (const auto* activate = epilogue_as<ActivateSums>()) return activate->activation;
    return is_gated() ? epilogue_as<Gate>()->activation : ActivationFn::kNone;
  }
  uint32_t second_n() const { return second ? second->weight.n : 0; }
};

// The name of a pair's dispatch: the first's variant and the second's format.
std::string pair_name(const Product& op);

// x as two bindings: f32 and anything, or the planes of q8.
struct XViews {
  TensorView x;
  TensorView scales;
};
XViews x_views(const Product& op, uint32_t max_rows);

// Adds up the sums of each split of a piece's columns and finishes them as `op` says, in a dispatch of its own.
Result<void> record_sum(Context& ctx, const Product& op, const WeightPiece& piece, const SplitSums& sums);

// Sets, for profiles, the bytes and operations of a dispatch that makes one piece's outputs, or the sums of so many
// splits.
struct Launch;
void set_costs(const Product& op, const WeightPiece& piece, Launch& launch, uint32_t splits = 1);

// "linear/weights/dot_q4_k" or "linear/weights/weight_q4_k".
std::string_view weight_fragment(WeightFormat format, bool q8);

// The workgroup memory that invocations of matvec_tile*.wgsl (kMostTileInvocations at most) use beside x: partial sums,
// with a deferred norm as many again (linear/matvec/tile_norm), and blocks and residuals of the rows.
inline constexpr uint32_t kTileUnitBytes = 32 + 16;  // of x in 8 bits: codes and factors of 32 columns
inline constexpr uint32_t tile_other_bytes(uint32_t partial_sums) { return 4 * partial_sums + 1024; }

Result<void> record_matvec(Context& ctx, const Product& op);
Result<void> record_matvec_tile(Context& ctx, const Product& op);
Result<void> record_matvec_tile_pair(Context& ctx, const Product& op);
Result<void> record_matmul_skinny(Context& ctx, const Product& op);
Result<void> record_matmul_narrow(Context& ctx, const Product& op);
Result<void> record_matmul(Context& ctx, const Product& op);
Result<void> record_matmul_matrix(Context& ctx, const Product& op);
// The sums that these leave of a weight in one piece, without a buffer; splits of 1: they write y themselves.
SplitSums few_sums(Context& ctx, const Product& op);
SplitSums narrow_sums(Context& ctx, const Product& op);
SplitSums matrix_sums(const Context& ctx, const Product& op);

}  // namespace doppler::kernels
