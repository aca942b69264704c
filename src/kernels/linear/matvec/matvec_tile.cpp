// Records one row of x times a weight in a tile format, with what its kernels do before and after: the division of x's
// norm, bias, residual, gate, 8-bit blocks, the deferral of the next norm, the best of each tile. A dispatch per piece.
// Read next: tile_sum.wgsl, matvec_tile.wgsl.
#include "kernels/linear/matvec/matvec_tile.h"

#include <algorithm>

#include "kernels/linear/matvec/matvec_tile.wgsl.h"
#include "kernels/linear/matvec/matvec_tile_best.wgsl.h"
#include "kernels/linear/matvec/matvec_tile_gate.wgsl.h"
#include "kernels/linear/matvec/matvec_tile_gate_of.wgsl.h"
#include "kernels/linear/matvec/matvec_tile_pair.wgsl.h"
#include "kernels/linear/matvec/matvec_tile_residual.wgsl.h"
#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMatvecTileUnit = 32;  // columns

}  // namespace

// Half tiles where whole ones would leave compute units idle. Four units of 16-bit weights would not fit an
// invocation's registers.
TileShape tile_shape(Context& ctx, const Product& op, const TileNeeds& needs) {
  const Weight& weight = op.weight;
  constexpr uint32_t kUnitsEach = 4, kHalf = kTileRows / 2;
  const gpu::Caps& caps = ctx.plan.caps();
  const uint32_t fitting =
      std::min({kMostTileInvocations.value, caps.max_invocations, caps.max_workgroup_size_x});
  TileShape shape{.units = weight.k / kMatvecTileUnit, .sums = needs.gated ? 2u : 1u};
  if (needs.half_tiles) {
    shape.rows = kHalf;
  } else if (!needs.whole_tiles) {
    const bool few = needs.outputs / kTileRows < kEnoughTiles.of(caps);
    shape.rows = tunable(ctx.policy, op.choice, "rows", few ? kHalf : kTileRows, {kHalf, kTileRows});
  }
  const uint32_t least = (needs.least_invocations + shape.rows - 1) / shape.rows;
  const uint32_t most = std::max(fitting / shape.rows, least);
  std::vector<uint32_t> alternatives;
  for (uint32_t s = 1; s <= std::min(most, shape.units); s *= 2) {
    if (s >= least) alternatives.push_back(s);
  }
  const uint32_t standard = std::clamp(shape.units / kUnitsEach, least, most);
  shape.slices = tunable(ctx.policy, op.choice, "slices", standard, std::move(alternatives));
  shape.depth =
      tunable(ctx.policy, op.choice, "depth", weight_format_info(weight.format).quantised() ? 4 : 2, {2, 4});
  return shape;
}

std::vector<gpu::WgslConst> tile_consts(const TileShape& shape) {
  return {u32_const("UNITS", shape.units), u32_const("ROWS", shape.rows), u32_const("SLICES", shape.slices),
          u32_const("SUMS", shape.sums), u32_const("DEPTH", shape.depth)};
}

std::string_view tile_x_fragment(const TileShape& shape, bool q8, uint32_t sums, const gpu::Caps& caps) {
  if (q8) return "linear/matvec/tile_x_q8";
  constexpr uint32_t kUnitBytes = 9 * 16;  // of x_quads
  const uint32_t bytes = shape.units * kUnitBytes + tile_other_bytes(shape.rows * shape.slices * sums);
  return bytes <= caps.max_workgroup_bytes ? "linear/matvec/tile_x_f32" : "linear/matvec/tile_x_f32_far";
}

bool blocks_in_subgroups(const Context& ctx) {
  return ctx.policy.allows(Lane::kSubgroups) && ctx.plan.caps().subgroup_min >= kQ8Block;
}

void choose_block_fragments(const Context& ctx, Launch& launch) {
  if (!blocks_in_subgroups(ctx)) return;
  launch.subgroups = true;
  launch.substitutions.emplace_back("linear/matvec/tile_block", "linear/matvec/tile_block_subgroup");
  launch.substitutions.emplace_back("linear/matvec/invocation", "linear/matvec/invocation_subgroup");
}

Result<void> record_matvec_tile(Context& ctx, const Product& op) {
  const Weight& weight = op.weight;
  const ProductRow& row = op.row;
  if (op.prologue_as<AddRmsNorm>()) return record_matvec_tile_add_norm(ctx, op);
  if (op.prologue_as<SplitPartials>()) return record_matvec_tile_splits(ctx, op);
  const bool gated = op.is_gated();
  const Outputs y = op.outputs();
  const auto* deferred = op.prologue_as<DeferredNorm>();
  const auto* defer = op.epilogue_as<AddResidualDeferNorm>();
  const auto* gate_of = op.epilogue_as<GateOf>();
  const auto* argmax = op.epilogue_as<TileArgmax>();
  const gpu::Caps& caps = ctx.plan.caps();
  const TileShape shape = tile_shape(ctx, op,
                                     {.outputs = weight.pieces.front().rows / (gated ? 2 : 1),
                                      .gated = gated,
                                      .whole_tiles = argmax != nullptr});
  const XViews x = x_views(op, 1);

  Launch launch{.variant = row.name};
  launch.substitutions = {
      {"linear/weights/format", weight_fragment(weight.format, row.q8)},
      {"linear/matvec/tile_x", tile_x_fragment(shape, row.q8, shape.sums + (deferred ? 1 : 0), caps)}};
  if (gated || defer || gate_of) choose_block_fragments(ctx, launch);
  uint32_t first_tile = 0;
  for (const WeightPiece& piece : weight.pieces) {
    const PieceViews views = piece_views(weight, piece);
    const uint32_t outputs = gated ? piece.rows / 2 : piece.rows;
    const uint32_t groups = (outputs + shape.rows - 1) / shape.rows;
    launch.grid.x = std::min(groups, caps.max_workgroups);
    launch.grid.y = (groups + launch.grid.x - 1) / launch.grid.x;
    launch.consts = tile_consts(shape);
    const auto add_consts = [&](std::initializer_list<gpu::WgslConst> consts) {
      launch.consts.insert(launch.consts.end(), consts);
    };
    add_consts({u32_const("GROUPS_X", launch.grid.x), bool_const("HAS_BIAS", op.bias.valid())});
    const TensorView bias = op.bias.valid() ? op.bias : views.weights;
    const TensorView sums = deferred ? deferred->square_sums() : views.weights;
    if (!defer) {
      add_consts(
          {bool_const("NORMED", deferred != nullptr), f32_const("NORM_EPS", deferred ? deferred->eps : 0)});
    }
    if (gated) {
      launch.entry = "linear/matvec/matvec_tile_gate";
      launch.layout = wgsl::matvec_tile_gate::kLayout;
      add_consts({u32_const("GATE_ROWS", outputs),
                  u32_const("ACTIVATE", static_cast<uint32_t>(op.activation())),
                  bool_const("HAS_Y", y.f32.valid()), bool_const("HAS_Q8", y.q8.valid()),
                  u32_const("Q8_PLANE1", q8_plane1_offset(1, outputs) / 4)});
      launch.bindings = {views.weights,
                         views.scales,
                         x.x,
                         x.scales,
                         sums,
                         bias,
                         y.f32.valid() ? y.f32 : unused_binding(ctx),
                         y.q8.valid() ? y.q8 : unused_binding(ctx)};
    } else if (gate_of) {
      launch.entry = "linear/matvec/matvec_tile_gate_of";
      launch.layout = wgsl::matvec_tile_gate_of::kLayout;
      add_consts({u32_const("N", piece.rows),
                  u32_const("ACTIVATE", static_cast<uint32_t>(gate_of->activation)),
                  bool_const("HAS_Y", y.f32.valid()), bool_const("HAS_Q8", y.q8.valid()),
                  u32_const("Q8_PLANE1", q8_plane1_offset(1, outputs) / 4)});
      launch.bindings = {views.weights,
                         views.scales,
                         x.x,
                         x.scales,
                         sums,
                         gate_of->x,
                         y.f32.valid() ? y.f32 : unused_binding(ctx),
                         y.q8.valid() ? y.q8 : unused_binding(ctx)};
    } else if (defer) {
      launch.entry = "linear/matvec/matvec_tile_residual";
      launch.layout = wgsl::matvec_tile_residual::kLayout;
      add_consts({u32_const("N", piece.rows), bool_const("H_IS_Q8", defer->norm.q8),
                  u32_const("Q8_PLANE1", q8_plane1_offset(1, weight.n) / 4),
                  u32_const("H_SUMS", DeferredNorm::sums_offset(weight.n, defer->norm.q8) / 4)});
      launch.bindings = {views.weights, views.scales,       x.x,   x.scales,
                         bias,          defer->norm.weight, y.f32, defer->norm.buffer};
    } else if (argmax) {
      launch.entry = "linear/matvec/matvec_tile_best";
      launch.layout = wgsl::matvec_tile_best::kLayout;
      add_consts({u32_const("N", piece.rows), u32_const("FIRST_ROW", piece.first_row),
                  u32_const("FIRST_TILE", first_tile), bool_const("HAS_Y", y.f32.valid())});
      launch.bindings = {views.weights, views.scales, x.x,
                         x.scales,      sums,         y.f32.valid() ? y.f32 : unused_binding(ctx),
                         argmax->best};
    } else {
      launch.entry = "linear/matvec/matvec_tile";
      launch.layout = wgsl::matvec_tile::kLayout;
      add_consts({u32_const("N", piece.rows), u32_const("FIRST_ROW", piece.first_row),
                  u32_const("Y_FIRST", y.column + piece.first_row), bool_const("ACCUMULATE", y.adds)});
      launch.bindings = {views.weights, views.scales, x.x, x.scales, sums, bias, y.f32};
    }
    set_costs(op, piece, launch);
    DP_CHECK(dispatch(ctx, launch));
    first_tile += groups;
  }
  return {};
}

Result<void> record_matvec_tile_pair(Context& ctx, const Product& op) {
  if (op.prologue_as<AddRmsNorm>()) return record_matvec_tile_pair_add_norm(ctx, op);
  const Weight &a = op.weight, &b = op.second->weight;
  const ProductRow &first = op.row, &second = op.second->row;
  const auto* deferred = op.prologue_as<DeferredNorm>();
  const bool has_half_tiles = a.n % kTileRows != 0 || b.n % kTileRows != 0;
  const TileShape shape = tile_shape(ctx, op, {.outputs = a.n + b.n, .half_tiles = has_half_tiles});
  const PieceViews views = piece_views(a, a.pieces[0]), second_views = piece_views(b, b.pieces[0]);
  const XViews x = x_views(op, 1);
  const std::string name = pair_name(op);
  Launch launch{
      .variant = name, .entry = "linear/matvec/matvec_tile_pair", .layout = wgsl::matvec_tile_pair::kLayout};
  launch.substitutions = {
      {"linear/weights/format", weight_fragment(a.format, first.q8)},
      {"second_linear/weights/format", weight_fragment(b.format, second.q8)},
      {"linear/matvec/tile_x", tile_x_fragment(shape, first.q8, deferred ? 3 : 2, ctx.plan.caps())}};
  launch.consts = tile_consts(shape);
  for (const gpu::WgslConst& value :
       {u32_const("FIRST_ROWS", a.n), bool_const("NORMED", deferred != nullptr),
        f32_const("NORM_EPS", deferred ? deferred->eps : 0), bool_const("HAS_BIAS", op.bias.valid())}) {
    launch.consts.push_back(value);
  }
  launch.bindings = {views.weights,
                     views.scales,
                     second_views.weights,
                     second_views.scales,
                     x.x,
                     x.scales,
                     deferred ? deferred->square_sums() : views.weights,
                     op.bias.valid() ? op.bias : views.weights,
                     op.outputs().f32};
  launch.grid = {.x = (a.n + b.n) / shape.rows};
  set_costs(op, a.pieces[0], launch);
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
