// Records the sum over the splits of a piece's columns, and what the product does with it. Read next: linear_sum.wgsl.
#include <algorithm>

#include "kernels/common/dispatch.h"
#include "kernels/linear/linear_sum.wgsl.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {

Result<void> record_sum(Context& ctx, const Product& op, const WeightPiece& piece, const SplitSums& sums) {
  constexpr uint32_t kWorkgroup = 64, kEach = 4;  // outputs of an invocation
  const bool gated = op.is_gated();
  const Outputs y = op.outputs();
  const uint32_t outputs = gated ? piece.rows / 2 : piece.rows;
  const wgsl::linear_sum::Params params{.rows = piece.rows,
                                        .first_row = piece.first_row,
                                        .y_first = y.column + piece.first_row,
                                        .y_stride = y.stride != 0 ? y.stride : op.weight.n / (gated ? 2 : 1),
                                        .row_quads = sums.row_stride / kEach,
                                        .split_quads = sums.split_stride / kEach};
  Launch launch{.variant = "linear.sum", .entry = "linear/linear_sum", .layout = wgsl::linear_sum::kLayout};
  launch.consts = {u32_const("WORKGROUP", kWorkgroup),
                   u32_const("SPLITS", sums.splits),
                   bool_const("HAS_BIAS", op.bias.valid()),
                   bool_const("ACCUMULATE", y.adds),
                   bool_const("GATED", gated),
                   u32_const("ACTIVATE", static_cast<uint32_t>(op.activation())),
                   bool_const("HAS_F32", y.f32.valid()),
                   bool_const("HAS_F16", y.f16.valid()),
                   u32_const("F16_COLUMNS", std::max(outputs, 16u)),
                   bool_const("HAS_Q8", y.q8.valid()),
                   u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, outputs) / 4)};
  launch.params = {reinterpret_cast<const uint8_t*>(&params), sizeof(params)};
  launch.bindings = {sums.partials, op.bias.valid() ? op.bias : sums.partials,
                     y.f32.valid() ? y.f32 : unused_binding(ctx), y.f16.valid() ? y.f16 : unused_binding(ctx),
                     y.q8.valid() ? y.q8 : unused_binding(ctx)};
  launch.grid = {
      .x = (outputs + kWorkgroup * kEach - 1) / (kWorkgroup * kEach), .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = uint64_t{4} * (uint64_t{piece.rows} * sums.splits + outputs * (y.adds ? 2 : 1));
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
