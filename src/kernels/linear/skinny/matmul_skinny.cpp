// Records a few rows of x times a weight: a dispatch per piece. Read next: matmul_skinny.wgsl.
#include <algorithm>

#include "kernels/common/dispatch.h"
#include "kernels/linear/product.h"
#include "kernels/linear/skinny/skinny_bindings.wgsl.h"
#include "kernels/linear/skinny/skinny_pair_bindings.wgsl.h"
#include "kernels/linear/skinny/skinny_shape.h"

namespace doppler::kernels {
namespace {

SplitSums sums_of(const SkinnyShape& shape, const WeightPiece& piece, uint32_t max_rows) {
  const uint32_t stride = (piece.rows + 3) / 4 * 4;
  return {.splits = shape.splits, .row_stride = stride, .split_stride = max_rows * stride};
}

}  // namespace

SplitSums few_sums(Context& ctx, const Product& op) {
  return sums_of(few_shape(ctx, op), op.weight.pieces.front(), ctx.max_rows);
}

Result<void> record_matmul_skinny(Context& ctx, const Product& op) {
  const Weight& weight = op.weight;
  const gpu::Caps& caps = ctx.plan.caps();
  const ProductRow& row = op.row;
  const bool of_cpu = row.algorithm == Algorithm::kOnceOfCpu, of_few = row.algorithm == Algorithm::kFew;
  const bool gated = op.is_gated();
  const Outputs y = op.outputs();
  const auto* left = op.epilogue_as<LeaveSums>();
  const SkinnyShape shape = of_cpu ? cpu_shape(ctx, op) : of_few ? few_shape(ctx, op) : skinny_shape(ctx, op);
  const bool split = shape.splits > 1;
  const WeightLayout layout = weight_layout(weight.format, weight.n, weight.k);
  const XViews x = x_views(op, ctx.max_rows);

  Launch launch{.variant = row.name,
                .entry = of_cpu   ? "linear/skinny/matmul_skinny_cpu"
                         : of_few ? "linear/skinny/matmul_few"
                                  : "linear/skinny/matmul_skinny",
                .layout = wgsl::skinny_bindings::kLayout};
  launch.substitutions = {
      {"linear/weights/format", weight_fragment(weight.format, row.q8)},
      {"linear/skinny/unit", row.q8 ? "linear/skinny/skinny_unit_q8" : "linear/skinny/skinny_unit_f32"},
      {"linear/skinny/x", of_cpu ? "linear/skinny/skinny_x_direct" : "linear/skinny/skinny_x_staged"}};
  const std::string_view weight_rows =
      shape.pair == kMostPair ? "linear/skinny/few_four_rows" : "linear/skinny/few_two_rows";
  if (of_few) launch.substitutions.emplace_back("linear/skinny/weight_rows", weight_rows);
  const std::string name = op.second ? pair_name(op) : "";
  if (op.second) {
    launch.variant = name;
    launch.entry = "linear/skinny/matmul_few_pair";
    launch.layout = wgsl::skinny_pair_bindings::kLayout;
    launch.substitutions.emplace_back("second_linear/weights/format",
                                      weight_fragment(op.second->weight.format, op.second->row.q8));
    launch.substitutions.emplace_back("second_linear/skinny/weight_rows", weight_rows);
    launch.substitutions.emplace_back("second_linear/skinny/x", "linear/skinny/skinny_x_of_first");
  }
  for (const WeightPiece& piece : weight.pieces) {
    const PieceViews views = piece_views(weight, piece);
    SplitSums sums = left ? left->sums : sums_of(shape, piece, ctx.max_rows);
    if (split && !left) sums.partials = ctx.plan.scratch("splits", sums.bytes());
    const uint32_t outputs = gated ? piece.rows / 2 : piece.rows + op.second_n();
    const uint32_t groups = (outputs + shape.group_rows() - 1) / shape.group_rows();
    launch.grid = {.rows_axis = 2, .rows_per_group = shape.batch};
    if (of_few) launch.grid = {.z = shape.splits};
    launch.grid.x = std::min(groups, caps.max_workgroups);
    launch.grid.y = (groups + launch.grid.x - 1) / launch.grid.x;
    launch.consts = {u32_const("UNITS", shape.units),
                     u32_const("COLUMNS", weight.k),
                     u32_const("ROW_VEC4S", layout.plane0_row_bytes / kVec4Bytes),
                     u32_const("BATCH", shape.batch),
                     u32_const("PAIR", shape.pair),
                     u32_const("GROUP_ROWS", shape.group_rows()),
                     u32_const("OTHER_ROW", gated ? outputs : shape.rows),
                     u32_const("OUTPUTS", outputs),
                     u32_const("FIRST_ROW", piece.first_row),
                     u32_const("GROUPS_X", launch.grid.x),
                     u32_const("Y_FIRST", split ? 0 : y.column + piece.first_row),
                     u32_const("Y_STRIDE", split           ? sums.row_stride
                                           : y.stride != 0 ? y.stride
                                                           : (weight.n + op.second_n()) / (gated ? 2 : 1)),
                     bool_const("HAS_BIAS", !split && op.bias.valid()),
                     bool_const("ACCUMULATE", !split && y.adds)};
    const auto add_consts = [&](std::initializer_list<gpu::WgslConst> consts) {
      launch.consts.insert(launch.consts.end(), consts);
    };
    if (of_cpu) {
      add_consts({u32_const("THREADS", shape.rows)});
    } else {
      add_consts({u32_const("ROWS", shape.rows), u32_const("SLICES", shape.slices),
                  u32_const("SHARED_VEC4S", shape.shared_vec4s()), u32_const("PADDING", shape.padding()),
                  u32_const("WEIGHT_ROWS", piece.rows), bool_const("GATED", gated),
                  u32_const("ACTIVATE", static_cast<uint32_t>(op.activation())),
                  bool_const("HAS_Q8", shape.q8_out), u32_const("BLOCK_VALUES", shape.block_values()),
                  u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, outputs) / 4),
                  u32_const("DEPTH", shape.depth)});
      if (of_few) {
        add_consts({u32_const("CHUNK", shape.chunk), u32_const("SPLIT_UNITS", shape.split_units),
                    u32_const("Y_SPLIT", sums.split_stride)});
        if (op.second) {
          add_consts({u32_const("FIRST_ROWS", weight.n), u32_const("SECOND_ROWS", op.second_n())});
        }
      }
    }
    launch.bindings = {views.weights,
                       views.scales,
                       x.x,
                       x.scales,
                       op.bias.valid() ? op.bias : views.weights,
                       split ? sums.partials : y.f32,
                       y.q8.valid() ? y.q8 : unused_binding(ctx),
                       ctx.state};
    if (op.second) {
      const Weight& second = op.second->weight;
      const PieceViews others = piece_views(second, second.pieces.front());
      launch.bindings = {views.weights,
                         views.scales,
                         others.weights,
                         others.scales,
                         x.x,
                         x.scales,
                         op.bias.valid() ? op.bias : views.weights,
                         y.f32,
                         ctx.state};
    }
    set_costs(op, piece, launch, shape.splits);
    DP_CHECK(dispatch(ctx, launch));
    if (split && !left) DP_CHECK(record_sum(ctx, op, piece, sums));
  }
  return {};
}

}  // namespace doppler::kernels
