// Records a chunk of rows of x times a weight: a dispatch per piece. Read next: matmul_tile.wgsl.
#include "kernels/common/dispatch.h"
#include "kernels/linear/matmul/matmul_bindings.wgsl.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {

Result<void> record_matmul(Context& ctx, const Product& op) {
  const ProductRow& row = op.row;
  if (row.algorithm == Algorithm::kMatrix) return record_matmul_matrix(ctx, op);
  const bool small = row.algorithm == Algorithm::kSmallTile;
  const uint32_t tile = small ? 16 : 64;  // TILE of the kernel
  constexpr uint32_t kUnit = 32;          // columns
  const Weight& weight = op.weight;
  const Outputs y = op.outputs();
  const WeightLayout layout = weight_layout(weight.format, weight.n, weight.k);
  const XViews x = x_views(op, ctx.max_rows);

  Launch launch{.variant = row.name,
                .entry = row.q8  ? "linear/matmul/matmul_dp4a"
                         : small ? "linear/matmul/matmul_small"
                                 : "linear/matmul/matmul_tile",
                .layout = wgsl::matmul_bindings::kLayout};
  launch.consts = {bool_const("HAS_BIAS", op.bias.valid()), bool_const("ACCUMULATE", y.adds)};
  if (!row.q8 && !small)
    launch.consts.push_back(bool_const("SKIP_EMPTY", row.algorithm == Algorithm::kTileOfCpu));
  launch.substitutions = {
      {"linear/weights/format", weight_fragment(weight.format, row.q8)},
      {"linear/x", row.algorithm == Algorithm::kPortable ? "linear/linear_x_any" : "linear/linear_x_eights"}};
  for (const WeightPiece& piece : weight.pieces) {
    const PieceViews views = piece_views(weight, piece);
    const wgsl::matmul_bindings::Params params{
        .rows = piece.rows,
        .first_row = piece.first_row,
        .y_first = y.column + piece.first_row,
        .y_stride = y.stride == 0 ? weight.n : y.stride,
        .k = weight.k,
        .row_vec4s = static_cast<uint32_t>(layout.plane0_row_bytes / 16),
        .units = (layout.padded_k + kUnit - 1) / kUnit};
    launch.params = {reinterpret_cast<const uint8_t*>(&params), sizeof(params)};
    launch.bindings = {views.weights, views.scales, x.x, x.scales, op.bias.valid() ? op.bias : views.weights,
                       y.f32,         ctx.state};
    launch.grid = {.x = (piece.rows + tile - 1) / tile, .rows_axis = 1, .rows_per_group = tile};
    set_costs(op, piece, launch);
    DP_CHECK(dispatch(ctx, launch));
  }
  return {};
}

}  // namespace doppler::kernels
