// Records the sum over the splits of a piece's columns, and what the product does with it. Read next: linear_sum.wgsl.
#include <algorithm>

#include "kernels/common/dispatch.h"
#include "kernels/linear/linear_sum.wgsl.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {

Result<void> record_sum(Context& ctx, const Product& op, const WeightPiece& piece, const SplitSums& sums) {
  constexpr uint32_t kWorkgroup = 64, kEach = 4;  // outputs of an invocation
  const bool gated = op.gate != ActivationFn::kNone;
  const uint32_t outputs = gated ? piece.rows / 2 : piece.rows;
  const wgsl::linear_sum::Params params{
      .rows = piece.rows,
      .first_row = piece.first_row,
      .y_first = op.y_column + piece.first_row,
      .y_stride = op.y_stride != 0 ? op.y_stride : op.weight.n / (gated ? 2 : 1),
      .row_quads = sums.row_stride / kEach,
      .split_quads = sums.split_stride / kEach};
  Launch launch{.variant = "linear.sum", .entry = "linear/linear_sum", .layout = wgsl::linear_sum::kLayout};
  launch.consts = {u32_const("WORKGROUP", kWorkgroup),
                   u32_const("SPLITS", sums.splits),
                   bool_const("HAS_BIAS", op.bias.valid()),
                   bool_const("ACCUMULATE", op.accumulate),
                   bool_const("GATED", gated),
                   u32_const("ACTIVATE", static_cast<uint32_t>(op.gate)),
                   bool_const("HAS_F32", op.y.valid()),
                   bool_const("HAS_F16", op.y_f16.valid()),
                   u32_const("F16_COLUMNS", std::max(outputs, 16u)),
                   bool_const("HAS_Q8", op.y_q8.valid()),
                   u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, outputs) / 4)};
  launch.params = {reinterpret_cast<const uint8_t*>(&params), sizeof(params)};
  launch.bindings = {
      sums.partials, op.bias.valid() ? op.bias : sums.partials, op.y.valid() ? op.y : unused_binding(ctx),
      op.y_f16.valid() ? op.y_f16 : unused_binding(ctx), op.y_q8.valid() ? op.y_q8 : unused_binding(ctx)};
  launch.grid = {
      .x = (outputs + kWorkgroup * kEach - 1) / (kWorkgroup * kEach), .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = uint64_t{4} * (uint64_t{piece.rows} * sums.splits + outputs * (op.accumulate ? 2 : 1));
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
