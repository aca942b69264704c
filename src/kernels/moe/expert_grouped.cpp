// Records grouped products: a dispatch per piece, and before it, for the matrix units, one that brings x into the order
// of the groups. Read next: grouped_matrix.wgsl, grouped_dp4a.wgsl.
#include "kernels/moe/expert_grouped.h"

#include "kernels/common/dispatch.h"
#include "kernels/linear/weight_fragments.h"
#include "kernels/moe/expert_place.h"
#include "kernels/moe/gather_f16.wgsl.h"
#include "kernels/moe/group_routes.h"
#include "kernels/moe/grouped_bindings.wgsl.h"
#include "kernels/moe/grouped_matrix.wgsl.h"
#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kExpertGroupedUnit = 32;  // columns
constexpr uint32_t kGroupColumns =
    64;  // outputs of a subgroup of the one kernel, of a workgroup of the other

// x in the order of the places.
Result<TensorView> gather(Context& ctx, const ExpertLinear& op, const GroupSizes& sizes) {
  constexpr uint32_t kMostInvocations = 256;
  const uint32_t k = op.weight.k, used = op.routes.n_used;
  const TensorView f16 = ctx.plan.scratch("x.places", f16_bytes(sizes.places, k));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), k / 4, kMostInvocations);
  Launch launch{.variant = "gather.f16", .entry = "moe/gather_f16", .layout = wgsl::gather_f16::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup), u32_const("F16_COLUMNS", k), u32_const("N_USED", used),
                   bool_const("X_PER_SLOT", op.x_per_slot), u32_const("TILES", sizes.tiles)};
  launch.bindings = {op.routes.groups, op.x.f32, f16};
  launch.grid = {.x = (k / 4 + workgroup - 1) / workgroup, .y = sizes.places};
  launch.bytes = uint64_t{6} * k * used;
  DP_CHECK(dispatch(ctx, launch));
  return f16;
}

std::vector<gpu::WgslConst> matrix_consts(Context& ctx, const ExpertLinear& op, Choice& choice,
                                          uint32_t& outputs) {
  constexpr uint32_t kPadding = 8, kCorner = 256 * sizeof(float);
  const gpu::Caps& caps = ctx.plan.caps();
  const uint32_t units = op.weight.k / kExpertGroupedUnit;
  uint32_t subgroups = tunable(ctx.policy, choice, "subgroups", 4, {1, 2, 4});
  uint32_t step_units = tunable(ctx.policy, choice, "step_units", 1, {1, 2, 4});
  const auto bytes = [&] {
    return subgroups * (kGroupColumns * (step_units * kExpertGroupedUnit + kPadding) * 2 + kCorner);
  };
  while (step_units > 1 && (units % step_units != 0 || bytes() > caps.max_workgroup_bytes)) step_units /= 2;
  while (subgroups > 1 && bytes() > caps.max_workgroup_bytes) subgroups /= 2;
  outputs = subgroups * kGroupColumns;
  return {u32_const("SUBGROUPS", subgroups), u32_const("BK", step_units * kExpertGroupedUnit),
          u32_const("UNITS", units)};
}

}  // namespace

Result<void> record_grouped(Context& ctx, const ProductChoice& choice, const ExpertLinear& op) {
  const ProductRow& row = *choice.row;
  const Weight& weight = op.weight;
  const uint32_t used = op.routes.n_used, x_slots = op.x_per_slot ? used : 1;
  const bool on_matrix_units = row.algorithm == Algorithm::kGroupedMatrix;
  const GroupSizes sizes(op.routes, ctx.max_rows);
  DP_CHECK(check_view(op.routes.groups, sizes.bytes(), "groups of expert_linear"));

  Choice noted = choice.choice;
  uint32_t outputs = kGroupColumns;
  Launch launch{.variant = row.name};
  TensorView x, x_scales;
  std::vector<gpu::WgslConst> shape;
  if (on_matrix_units) {
    DP_TRY(x, gather(ctx, op, sizes));
    shape = matrix_consts(ctx, op, noted, outputs);
    launch.entry = "moe/grouped_matrix";
    launch.layout = wgsl::grouped_matrix::kLayout;
    launch.matrix = true;
    launch.substitutions = {{"linear/weights/stage", weight_fragments(weight.format).stage}};
  } else {
    const uint32_t rows = ctx.max_rows * x_slots;
    const uint64_t plane1 = q8_plane1_offset(rows, weight.k);
    x = op.x.q8.sub(0, uint64_t{rows} * weight.k);
    x_scales = op.x.q8.sub(plane1, q8_bytes(rows, weight.k) - plane1);
    const WeightLayout layout = weight_layout(weight.format, weight.n, weight.k);
    shape = {u32_const("K", weight.k), u32_const("UNITS", layout.padded_k / kExpertGroupedUnit),
             u32_const("ROW_VEC4S", layout.plane0_row_bytes / 16)};
    launch.entry = "moe/grouped_dp4a";
    launch.layout = wgsl::grouped_bindings::kLayout;
    launch.substitutions = {{"linear/weights/format", weight_fragment(weight.format, /*q8=*/true)}};
  }
  launch.grid = {.x = (op.matrices * op.n + outputs - 1) / outputs, .y = sizes.tiles};
  for (const WeightPiece& piece : weight.pieces) {
    const PieceViews pieces = piece_views(weight, piece);
    launch.consts = shape;
    add_place_consts(op, piece, launch.consts);
    launch.consts.push_back(u32_const("TILES", sizes.tiles));
    launch.bindings = {pieces.weights, pieces.scales, x};
    if (!on_matrix_units) launch.bindings.push_back(x_scales);
    launch.bindings.push_back(op.routes.groups);
    launch.bindings.push_back(op.bias.valid() ? op.bias : pieces.scales);
    launch.bindings.push_back(op.y);
    launch.fixed_bytes = piece_bytes(weight, piece);
    launch.bytes = uint64_t{2} * weight.k * used + uint64_t{4} * op.matrices * used * op.n;
    launch.operations = uint64_t{2} * op.matrices * used * op.n * weight.k;
    DP_CHECK(dispatch(ctx, launch));
  }
  note_choice(ctx, noted);
  return {};
}

}  // namespace doppler::kernels
