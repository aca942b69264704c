// Records 16 to 64 rows of x times a weight on the matrix units: a dispatch per piece, and one that adds up the splits
// and finishes what the first does not. Read next: matmul_narrow.wgsl, ../linear_sum.wgsl.
#include <algorithm>
#include <bit>

#include "kernels/common/dispatch.h"
#include "kernels/linear/measured.h"
#include "kernels/linear/narrow/matmul_narrow_bindings.wgsl.h"
#include "kernels/linear/product.h"
#include "kernels/linear/weight_fragments.h"
#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kNarrowUnit = 32;      // columns
constexpr uint32_t kStepUnits = 4;        // that the kernel takes at once
constexpr uint32_t kNarrowFragment = 16;  // rows of a matrix unit's numbers
constexpr uint32_t kFewRows = 32, kManyRows = 64;
// Tint wants so many bytes after y: a matrix unit's 16 x 16 results.
constexpr uint64_t kNarrowFragmentBytes = uint64_t{kNarrowFragment} * kNarrowFragment * sizeof(float);

// The constants of matmul_narrow.wgsl and its grid.
struct NarrowSizes {
  uint32_t tiles = 1;
  uint32_t rows = kManyRows;
  uint32_t subgroups = 2;
  uint32_t splits = 1;
  uint32_t split_units = 0;  // of all but the last
  bool ahead = false;

  uint32_t group_rows() const { return rows * subgroups; }
  uint32_t workgroup_bytes() const {
    constexpr uint32_t kBuffer = kNarrowFragment * 40 * 2;
    return subgroups * 2 * kBuffer + tiles * kBuffer;
  }
};

// Registers for 32 columns of a weight row.
uint32_t unit_registers(WeightFormat format) {
  const WeightFormatInfo& info = weight_format_info(format);
  return (info.plane0_block_bytes + info.plane1_block_bytes) * kNarrowUnit / info.block_size / 4;
}

// Nearly as many workgroups as the device runs at once, so that all end together. Short splits are only for a device
// that would run half empty without them, since each split's sums are written and read again.
NarrowSizes choose_sizes(Context& ctx, const Product& op, const WeightPiece& piece, uint32_t units) {
  constexpr uint32_t kNarrowMostSplits = 16, kLeastSteps = 2, kFewSteps = 4;
  // Weight rows: larger workgroups share more of x. With four tiles of x larger ones pay for fewer weight rows, and for
  // weights that take longer to unpack (8B, 64 rows: gate and up, and down in tile_q6, 3 us a layer each).
  constexpr uint32_t kHead = 65536, kManyRowsOfFourTiles = 16384;
  const gpu::Caps& caps = ctx.plan.caps();
  NarrowSizes sizes{.tiles = (ctx.max_rows + kNarrowFragment - 1) / kNarrowFragment};
  // Units of 16-bit weights fill twice the registers.
  const uint32_t rows = weight_format_info(op.weight.format).quantised() ? kManyRows : kFewRows;
  const bool four =
      piece.rows >= kHead ||
      (sizes.tiles == 4 && (piece.rows >= kManyRowsOfFourTiles || op.weight.format == WeightFormat::kTileQ6));
  sizes.rows = tunable(ctx.policy, op.choice, "rows", rows, {kFewRows, kManyRows});
  sizes.ahead = sizes.tiles <= 2 && unit_registers(op.weight.format) * sizes.rows / 8 <= kMostUnitRegisters;
  sizes.subgroups = tunable(ctx.policy, op.choice, "subgroups", four ? 4 : 2, {1, 2, 4, 8});
  while (sizes.subgroups > 1 && (sizes.workgroup_bytes() > caps.max_workgroup_bytes ||
                                 sizes.subgroups * 32 > caps.max_invocations)) {
    sizes.subgroups /= 2;
  }
  const uint32_t groups = (piece.rows + sizes.group_rows() - 1) / sizes.group_rows();
  const uint32_t steps = (units + kStepUnits - 1) / kStepUnits;
  const uint32_t most = std::clamp(steps / kLeastSteps, 1u, kNarrowMostSplits);
  const uint32_t at_once =
      (sizes.tiles == 1 ? kNarrowAtOnceOfOne : kNarrowAtOnce).of(caps) * 2 / sizes.subgroups;
  uint32_t splits = std::bit_floor(std::clamp(at_once / groups, 1u, most));
  if (steps / splits < kFewSteps && groups * splits / 2 >= kNarrowHalf.of(caps)) splits /= 2;
  splits = std::min(most, tunable(ctx.policy, op.choice, "splits", splits, {1, 2, 4, 8, 16}));
  const uint32_t split_steps = (steps + splits - 1) / splits;
  sizes.splits = (steps + split_steps - 1) / split_steps;
  sizes.split_units = split_steps * kStepUnits;
  return sizes;
}

// Where the kernel's sums go.
struct NarrowTarget {
  TensorView y;
  uint32_t first = 0;   // column of output 0
  uint32_t stride = 0;  // of a row
  uint32_t split = 0;   // numbers of a split of the columns
};

uint32_t narrow_units_of(const Weight& weight, const WeightPiece& piece) {
  return weight_layout(weight.format, piece.rows, weight.k).padded_k / kNarrowUnit;
}

// Whole fragments are stored: of all rows of x and weight rows that the workgroups make.
SplitSums sums_of(const NarrowSizes& sizes, const WeightPiece& piece) {
  const uint32_t stride = (piece.rows + sizes.group_rows() - 1) / sizes.group_rows() * sizes.group_rows();
  return {
      .splits = sizes.splits, .row_stride = stride, .split_stride = sizes.tiles * kNarrowFragment * stride};
}

Result<void> record_narrow_piece(Context& ctx, const Product& op, const WeightPiece& piece) {
  const Weight& weight = op.weight;
  const bool gated = op.is_gated();
  const Outputs y = op.outputs();
  const uint32_t units = narrow_units_of(weight, piece);
  const NarrowSizes sizes = choose_sizes(ctx, op, piece, units);
  const uint32_t groups = (piece.rows + sizes.group_rows() - 1) / sizes.group_rows();
  const auto* left = op.epilogue_as<LeaveSums>();
  const bool split = left || sizes.splits > 1 || gated || y.f32.bytes < kNarrowFragmentBytes;
  SplitSums sums = left ? left->sums : sums_of(sizes, piece);
  if (split && !left) sums.partials = ctx.plan.scratch("splits", sums.bytes());
  NarrowTarget target{
      .y = y.f32, .first = y.column + piece.first_row, .stride = y.stride != 0 ? y.stride : weight.n};
  if (split) target = {.y = sums.partials, .stride = sums.row_stride, .split = sums.split_stride};

  const wgsl::matmul_narrow_bindings::Params params{.rows = piece.rows,
                                                    .first_row = piece.first_row,
                                                    .y_first = target.first,
                                                    .y_stride = target.stride,
                                                    .y_split = target.split,
                                                    .k_tiles = weight.k / kNarrowFragment,
                                                    .units = units,
                                                    .split_units = sizes.split_units,
                                                    .x_tiles = sizes.tiles};
  const PieceViews views = piece_views(weight, piece);
  Launch launch{.variant = op.row.name,
                .entry = "linear/narrow/matmul_narrow",
                .layout = wgsl::matmul_narrow_bindings::kLayout};
  launch.matrix = true;
  launch.consts = {u32_const("ROWS", sizes.rows),
                   u32_const("SUBGROUPS", sizes.subgroups),
                   u32_const("TILES", sizes.tiles),
                   bool_const("AHEAD", sizes.ahead),
                   bool_const("HAS_TAIL", units % kStepUnits != 0),
                   bool_const("SPLIT", split),
                   bool_const("HAS_BIAS", !split && op.bias.valid()),
                   bool_const("ACCUMULATE", !split && y.adds)};
  launch.substitutions = {{"linear/weights/stage", weight_fragments(weight.format).stage}};
  launch.params = {reinterpret_cast<const uint8_t*>(&params), sizeof(params)};
  launch.bindings = {views.weights, views.scales, op.x.f16, op.bias.valid() ? op.bias : views.weights,
                     target.y,      ctx.state};
  launch.grid = {.x = groups, .y = sizes.splits};
  launch.fixed_bytes = piece_bytes(weight, piece);
  launch.bytes = uint64_t{2} * weight.k + uint64_t{4} * piece.rows * (split ? sizes.splits : y.adds ? 2 : 1);
  launch.operations = uint64_t{2} * piece.rows * weight.k;
  DP_CHECK(dispatch(ctx, launch));
  if (!split || left) return {};
  return record_sum(ctx, op, piece, sums);
}

}  // namespace

SplitSums narrow_sums(Context& ctx, const Product& op) {
  const WeightPiece& piece = op.weight.pieces.front();
  return sums_of(choose_sizes(ctx, op, piece, narrow_units_of(op.weight, piece)), piece);
}

Result<void> record_matmul_narrow(Context& ctx, const Product& op) {
  for (const WeightPiece& piece : op.weight.pieces) DP_CHECK(record_narrow_piece(ctx, op, piece));
  return {};
}

}  // namespace doppler::kernels
