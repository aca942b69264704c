// matvec_tile.h: products that make their input of a residual and a branch (AddRmsNorm).
// Read next: tile_x_add_norm.wgsl.
#include "kernels/linear/matvec/matvec_tile.h"
#include "kernels/linear/matvec/matvec_tile_gate_add_norm.wgsl.h"
#include "kernels/linear/matvec/matvec_tile_pair_add_norm.wgsl.h"

namespace doppler::kernels {
namespace {

// Invocations that the fragment for x must have.
uint32_t least_invocations(const Context& ctx, uint32_t k) {
  return blocks_in_subgroups(ctx) ? 1 : k / kQ8Block;
}

// Groups and constants of x, and what reading its parts costs.
void bind_add_norm(const Context& ctx, const AddRmsNorm& x, uint32_t k, uint32_t outputs,
                   const TileShape& shape, Launch& launch) {
  launch.substitutions.emplace_back("linear/matvec/tile_x", blocks_in_subgroups(ctx)
                                                                ? "linear/matvec/tile_x_add_norm_subgroup"
                                                                : "linear/matvec/tile_x_add_norm");
  launch.grid = {.x = outputs / shape.rows};
  launch.consts.push_back(u32_const("GROUPS", launch.grid.x));
  launch.consts.push_back(f32_const("NORM_EPS", x.eps));
  launch.bytes = uint64_t{5} * k * sizeof(float);
}

// If both weights are one, all outputs are the first's.
Result<void> record_outputs(Context& ctx, const Product& op, const Weight& b, const ProductRow& second,
                            std::string_view name) {
  const Weight& a = op.weight;
  const uint32_t outputs = &a == &b ? a.n : a.n + b.n;
  const TileShape shape =
      tile_shape(ctx, op, {.outputs = outputs, .least_invocations = least_invocations(ctx, a.k)});
  const PieceViews views = piece_views(a, a.pieces[0]), second_views = piece_views(b, b.pieces[0]);
  const AddRmsNorm& x = *op.prologue_as<AddRmsNorm>();
  Launch launch{.variant = name,
                .entry = "linear/matvec/matvec_tile_pair_add_norm",
                .layout = wgsl::matvec_tile_pair_add_norm::kLayout};
  launch.substitutions = {{"linear/weights/format", weight_fragment(a.format, true)},
                          {"second_linear/weights/format", weight_fragment(b.format, second.q8)}};
  choose_block_fragments(ctx, launch);  // for the numbers of invocations
  launch.consts = tile_consts(shape);
  launch.consts.push_back(u32_const("FIRST_ROWS", a.n));
  bind_add_norm(ctx, x, a.k, outputs, shape, launch);
  launch.bindings = {views.weights, views.scales,    second_views.weights, second_views.scales,
                     x.residual,    x.branch,        x.add_weight,         x.weight,
                     x.x,           op.outputs().f32};
  launch.fixed_bytes = piece_bytes(a, a.pieces[0]) + (&a == &b ? 0 : piece_bytes(b, b.pieces[0]));
  launch.bytes += uint64_t{4} * outputs;
  launch.operations = uint64_t{2} * outputs * a.k;
  return dispatch(ctx, launch);
}

}  // namespace

Result<void> record_matvec_tile_add_norm(Context& ctx, const Product& op) {
  const Weight& weight = op.weight;
  const ProductRow& row = op.row;
  if (!op.is_gated()) return record_outputs(ctx, op, weight, row, row.name);
  const uint32_t outputs = weight.n / 2;
  const TileShape shape = tile_shape(
      ctx, op, {.outputs = outputs, .gated = true, .least_invocations = least_invocations(ctx, weight.k)});
  const PieceViews views = piece_views(weight, weight.pieces[0]);
  const AddRmsNorm& x = *op.prologue_as<AddRmsNorm>();
  Launch launch{.variant = row.name,
                .entry = "linear/matvec/matvec_tile_gate_add_norm",
                .layout = wgsl::matvec_tile_gate_add_norm::kLayout};
  launch.substitutions = {{"linear/weights/format", weight_fragment(weight.format, true)}};
  choose_block_fragments(ctx, launch);
  launch.consts = tile_consts(shape);
  launch.consts.push_back(u32_const("GATE_ROWS", outputs));
  launch.consts.push_back(u32_const("ACTIVATE", static_cast<uint32_t>(op.activation())));
  launch.consts.push_back(u32_const("Q8_PLANE1", q8_plane1_offset(1, outputs) / 4));
  bind_add_norm(ctx, x, weight.k, outputs, shape, launch);
  launch.bindings = {views.weights, views.scales, x.residual, x.branch,
                     x.add_weight,  x.weight,     x.x,        op.outputs().q8};
  launch.fixed_bytes = piece_bytes(weight, weight.pieces[0]);
  launch.bytes += q8_bytes(1, outputs);
  launch.operations = uint64_t{2} * weight.n * weight.k;
  return dispatch(ctx, launch);
}

Result<void> record_matvec_tile_pair_add_norm(Context& ctx, const Product& op) {
  return record_outputs(ctx, op, op.second->weight, op.second->row, pair_name(op));
}

}  // namespace doppler::kernels
