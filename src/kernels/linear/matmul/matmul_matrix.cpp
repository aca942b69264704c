// Records a chunk of rows of x times a weight on the matrix units: a dispatch per piece, and one that adds up the
// splits if a piece by itself has too few workgroups. Read next: matmul_matrix.wgsl.
#include <algorithm>

#include "kernels/common/dispatch.h"
#include "kernels/linear/matmul/matmul_matrix_bindings.wgsl.h"
#include "kernels/linear/measured.h"
#include "kernels/linear/product.h"
#include "kernels/linear/weight_fragments.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kUnit = 32;     // columns
constexpr uint32_t kSubTile = 64;  // rows of x and of the weight that a subgroup makes
constexpr uint32_t kMostSplits = 8;
// Tint wants so many bytes after y even if no results are stored there: a matrix unit's 16 x 16 results.
constexpr uint64_t kFragmentBytes = 256 * sizeof(float);

// The constants of matmul_matrix.wgsl and its grid.
struct MatrixSizes {
  uint32_t subgroups = 4;    // one above the other: 64 rows of x each
  uint32_t step_units = 4;   // BK / 32
  uint32_t splits = 1;       // each takes at least one step
  uint32_t split_units = 0;  // of all but the last
};

uint32_t strips_bytes(uint32_t subgroups) {
  constexpr uint32_t kStripRows = 16, kPadding = 8;
  return subgroups * kStripRows * (kSubTile + kPadding) * sizeof(float);
}

uint32_t workgroup_bytes(const MatrixSizes& sizes) {
  constexpr uint32_t kPadding = 8;
  return std::max<uint32_t>(kSubTile * (sizes.step_units * kUnit + kPadding) * 2,
                            strips_bytes(sizes.subgroups));
}

// The time of a piece in us: rounds of workgroups, `at_once` in each round; each workgroup walks over its share of the
// columns.
double cost(uint32_t at_once, uint32_t workgroups, uint32_t steps, uint32_t splits, uint64_t outputs) {
  constexpr double kDispatch = 2.5,
                   kBytesPerUs = 3.5e6;  // of the splits' sums, which are written, read and added up
  const uint32_t all = workgroups * splits;
  const double step = all * 2 <= at_once ? kUsOfStepAlone : kUsOfStepTogether;
  const double rounds = (all + at_once - 1) / at_once;
  double us = rounds * ((steps + splits - 1) / splits) * step;
  if (splits > 1)
    us += kDispatch + static_cast<double>((2 * splits + 1) * outputs) * sizeof(float) / kBytesPerUs;
  return us;
}

MatrixSizes choose_sizes(const gpu::Caps& caps, uint32_t max_rows, uint32_t n, uint32_t units,
                         uint32_t most_splits) {
  MatrixSizes sizes;
  if (max_rows <= 2 * kSubTile || strips_bytes(sizes.subgroups) > caps.max_workgroup_bytes)
    sizes.subgroups = 2;
  while (units % sizes.step_units != 0 || workgroup_bytes(sizes) > caps.max_workgroup_bytes) {
    sizes.step_units /= 2;
  }
  if (sizes.step_units == 1) sizes.subgroups = 2;  // every invocation brings a unit
  const uint32_t tall = sizes.subgroups * kSubTile;
  const uint32_t workgroups = (n + kSubTile - 1) / kSubTile * ((max_rows + tall - 1) / tall);
  const uint32_t steps = units / sizes.step_units;
  double best = 0;
  for (uint32_t wanted = 1; wanted <= std::min(most_splits, steps); ++wanted) {
    const uint32_t split_steps = (steps + wanted - 1) / wanted;
    const uint32_t splits = (steps + split_steps - 1) / split_steps;
    const double us = cost(kMatrixAtOnce.of(caps), workgroups, steps, splits, uint64_t{max_rows} * n);
    if (wanted != 1 && us >= best) continue;
    best = us;
    sizes.splits = splits;
    sizes.split_units = split_steps * sizes.step_units;
  }
  return sizes;
}

// Where a piece's outputs go.
struct Target {
  TensorView y;
  uint32_t first = 0;   // column of output 0
  uint32_t stride = 0;  // of a row
};

uint32_t units_of(const Weight& weight, const WeightPiece& piece) {
  return weight_layout(weight.format, piece.rows, weight.k).padded_k / kUnit;
}

SplitSums sums_of(uint32_t splits, uint32_t max_rows, const WeightPiece& piece) {
  return {.splits = splits, .row_stride = piece.rows, .split_stride = max_rows * piece.rows};
}

MatrixSizes sizes_of(const Context& ctx, const Product& op, const WeightPiece& piece) {
  const bool may_split = !op.is_gated() && piece.rows % 4 == 0;  // linear_sum.wgsl
  return choose_sizes(ctx.plan.caps(), ctx.max_rows, piece.rows, units_of(op.weight, piece),
                      may_split ? kMostSplits : 1);
}

Result<void> record_piece(Context& ctx, const Product& op, const WeightPiece& piece) {
  const Weight& weight = op.weight;
  const bool gated = op.is_gated();
  const Outputs y = op.outputs();
  const uint32_t units = units_of(weight, piece);
  const MatrixSizes sizes = sizes_of(ctx, op, piece);
  Target made{.y = y.f32,
              .first = y.column + piece.first_row,
              .stride = y.stride != 0 ? y.stride
                        : gated       ? weight.n / 2
                                      : weight.n};
  const bool split = sizes.splits > 1;
  const auto* left = op.epilogue_as<LeaveSums>();
  SplitSums sums = left ? left->sums : sums_of(sizes.splits, ctx.max_rows, piece);
  if (split && !left) sums.partials = ctx.plan.scratch("splits", sums.bytes());
  if (split) made = {sums.partials, 0, sums.row_stride};

  const wgsl::matmul_matrix_bindings::Params params{.rows = piece.rows,
                                                    .first_row = piece.first_row,
                                                    .y_first = made.first,
                                                    .y_stride = made.stride,
                                                    .y_split = sums.split_stride,
                                                    .k_tiles = weight.k / 16,
                                                    .units = units,
                                                    .split_units = sizes.split_units,
                                                    .x_tiles = (ctx.max_rows + 15) / 16};
  const PieceViews views = piece_views(weight, piece);
  Launch launch{.variant = op.row.name,
                .entry = "linear/matmul/matmul_matrix",
                .layout = wgsl::matmul_matrix_bindings::kLayout};
  launch.matrix = true;
  launch.consts = {u32_const("SUBGROUPS_M", sizes.subgroups),
                   u32_const("SUBGROUPS_N", 1),
                   u32_const("BK", sizes.step_units * kUnit),
                   bool_const("HAS_BIAS", !split && op.bias.valid()),
                   bool_const("ACCUMULATE", !split && y.adds),
                   bool_const("GATED", gated),
                   u32_const("ACTIVATE", split ? 0 : static_cast<uint32_t>(op.activation())),
                   bool_const("HAS_F32", y.f32.valid()),
                   bool_const("HAS_F16", y.f16.valid()),
                   u32_const("F16_COLUMNS", std::max(gated ? weight.n / 2 : weight.n, 16u))};
  launch.substitutions = {{"linear/weights/stage", weight_fragments(weight.format).stage}};
  launch.params = {reinterpret_cast<const uint8_t*>(&params), sizeof(params)};
  launch.bindings = {views.weights,
                     views.scales,
                     op.x.f16,
                     op.bias.valid() ? op.bias : views.weights,
                     made.y.valid() ? made.y : ctx.plan.scratch("unused", kFragmentBytes),
                     ctx.state,
                     y.f16.valid() ? y.f16 : unused_binding(ctx)};
  launch.grid = {.y = (piece.rows + kSubTile - 1) / kSubTile,
                 .z = sizes.splits,
                 .rows_axis = 0,
                 .rows_per_group = sizes.subgroups * kSubTile};
  launch.fixed_bytes = piece_bytes(weight, piece);
  launch.bytes = uint64_t{2} * weight.k + uint64_t{4} * piece.rows * (split ? sizes.splits : y.adds ? 2 : 1);
  launch.operations = uint64_t{2} * piece.rows * weight.k;
  DP_CHECK(dispatch(ctx, launch));
  if (!split || left) return {};
  return record_sum(ctx, op, piece, sums);
}

}  // namespace

SplitSums matrix_sums(const Context& ctx, const Product& op) {
  const WeightPiece& piece = op.weight.pieces.front();
  return sums_of(sizes_of(ctx, op, piece).splits, ctx.max_rows, piece);
}

Result<void> record_matmul_matrix(Context& ctx, const Product& op) {
  for (const WeightPiece& piece : op.weight.pieces) DP_CHECK(record_piece(ctx, op, piece));
  return {};
}

}  // namespace doppler::kernels
