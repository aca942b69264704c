// Records one row of x times a weight: a dispatch per piece. Read next: matvec_subgroup.wgsl.
#include <algorithm>
#include <bit>

#include "kernels/common/dispatch.h"
#include "kernels/linear/matvec/matvec_bindings.wgsl.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMatvecUnit = 32;  // columns

struct Shape {
  std::string_view entry;
  uint32_t workgroup = 0;
  uint32_t threads_per_row = 0;  // 0: the kernel has no such constant
  uint32_t outputs = 0;          // of one workgroup
};

// Whole rows on a CPU: one subgroup of 8 a workgroup and 4 rows an invocation are best of 1-8 rows and 8-32
// invocations (lavapipe, 2 cores, 2560 x 512 in q8_0 and q4_k). A gate makes two sums of each row.
constexpr uint32_t kMatvecCpuWorkgroup = 8, kMatvecCpuRows = 4;

// Invocations that share a row: one unit of 32 columns each if that fits a workgroup of 256, else an equal
// number of rounds, in whole subgroups.
uint32_t invocations_for(uint32_t units, uint32_t step, uint32_t most) {
  const uint32_t rounds = (units + most - 1) / most;
  const uint32_t invocations = (units + rounds - 1) / rounds;
  return std::min((invocations + step - 1) / step * step, most);
}

Shape shape_for(const ProductRow& row, const gpu::Caps& caps, uint32_t k, bool gated) {
  constexpr uint32_t kSubgroup = 32;  // if the device names no larger one
  const uint32_t most = std::bit_floor(
      std::min({kMostMatvecInvocations.value, caps.max_invocations, caps.max_workgroup_size_x}));
  const uint32_t units = (k + kMatvecUnit - 1) / kMatvecUnit;
  const uint32_t rows = gated ? 1 : 2;
  Shape shape;
  switch (row.algorithm) {
    case Algorithm::kWholeRows:
      return {.entry = "linear/matvec/matvec_whole_rows",
              .workgroup = kMatvecCpuWorkgroup,
              .outputs = kMatvecCpuWorkgroup * (gated ? kMatvecCpuRows / 2 : kMatvecCpuRows)};
    case Algorithm::kSubgroup:
      shape.entry = "linear/matvec/matvec_subgroup";
      shape.threads_per_row = invocations_for(units, std::max(kSubgroup, caps.subgroup_max), most);
      break;
    case Algorithm::kWorkgroup:
      shape.entry = "linear/matvec/matvec_workgroup";
      shape.threads_per_row = std::clamp(std::bit_ceil(units), kSubgroup, most);
      break;
    default:
      shape.entry = "linear/matvec/matvec_portable";
      shape.threads_per_row = std::clamp(std::bit_ceil((k + 7) / 8), 1u, kSubgroup);
  }
  const uint32_t sections = std::max(1u, most / shape.threads_per_row);
  shape.workgroup = sections * shape.threads_per_row;
  shape.outputs = sections * rows;
  return shape;
}

}  // namespace

Result<void> record_matvec(Context& ctx, const Product& op) {
  const Weight& weight = op.weight;
  const ProductRow& row = op.row;
  const bool gated = op.is_gated();
  const Outputs y = op.outputs();
  const gpu::Caps& caps = ctx.plan.caps();
  const Shape shape = shape_for(row, caps, weight.k, gated);
  const WeightLayout layout = weight_layout(weight.format, weight.n, weight.k);
  const XViews x = x_views(op, 1);

  Launch launch{.variant = row.name, .entry = shape.entry, .layout = wgsl::matvec_bindings::kLayout};
  launch.subgroups = row.algorithm == Algorithm::kSubgroup;
  launch.consts = {u32_const("WORKGROUP", shape.workgroup), bool_const("HAS_BIAS", op.bias.valid()),
                   bool_const("ACCUMULATE", y.adds),
                   u32_const("ACTIVATE", static_cast<uint32_t>(op.activation()))};
  launch.consts.push_back(shape.threads_per_row != 0 ? u32_const("THREADS_PER_ROW", shape.threads_per_row)
                                                     : u32_const("ROWS", shape.outputs / shape.workgroup));
  launch.substitutions = {
      {"linear/weights/format", weight_fragment(weight.format, row.q8)},
      {"linear/matvec/unit_x", row.q8 ? "linear/matvec/unit_x_q8" : "linear/matvec/unit_x_f32"},
      {"linear/x", "linear/linear_x_any"}};
  for (const WeightPiece& piece : weight.pieces) {
    const PieceViews views = piece_views(weight, piece);
    const uint32_t outputs = gated ? piece.rows / 2 : piece.rows;
    const uint32_t groups = (outputs + shape.outputs - 1) / shape.outputs;
    launch.grid.x = std::min(groups, caps.max_workgroups);
    launch.grid.y = (groups + launch.grid.x - 1) / launch.grid.x;
    const wgsl::matvec_bindings::Params params{
        .rows = outputs,
        .first_row = piece.first_row,
        .y_first = y.column + piece.first_row,
        .gate_rows = outputs,
        .k = weight.k,
        .row_vec4s = static_cast<uint32_t>(layout.plane0_row_bytes / 16),
        .units = (layout.padded_k + kMatvecUnit - 1) / kMatvecUnit,
        .groups_x = launch.grid.x};
    launch.params = {reinterpret_cast<const uint8_t*>(&params), sizeof(params)};
    launch.bindings = {views.weights, views.scales, x.x, x.scales, op.bias.valid() ? op.bias : views.weights,
                       y.f32};
    set_costs(op, piece, launch);
    DP_CHECK(dispatch(ctx, launch));
  }
  return {};
}

}  // namespace doppler::kernels
