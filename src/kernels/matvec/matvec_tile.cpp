// Records one row of x times a weight in a tile format, with what its kernels do before and after: the division of x's
// norm, bias, residual, gate, 8-bit blocks, the beginning of the next norm, the best of each tile. A dispatch per piece.
// Read next: tile_sum.wgsl, matvec_tile.wgsl.
#include <algorithm>

#include "kernels/common/dispatch.h"
#include "kernels/linear/product.h"
#include "kernels/matvec/matvec_tile.wgsl.h"
#include "kernels/matvec/matvec_tile_best.wgsl.h"
#include "kernels/matvec/matvec_tile_gate.wgsl.h"
#include "kernels/matvec/matvec_tile_pair.wgsl.h"
#include "kernels/matvec/matvec_tile_residual.wgsl.h"
#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kUnit = 32;  // columns

// Invocations that share a row. H200, whole steps of 1B and 8B in q4_k_m, tok/s with up to 8, 16 and 32: 1,431, 1,545,
// 1,446 and 456, 472, 463 (doppler bench, 2026-11-21).
uint32_t slices_of(Context& ctx, uint32_t units) {
  constexpr uint32_t kMost = 16, kUnitsEach = 4, kMostTried = 32;
  const gpu::Caps& caps = ctx.plan.caps();
  const uint32_t fitting = std::min(caps.max_invocations, caps.max_workgroup_size_x) / kTileRows;
  const uint32_t standard = std::clamp(units / kUnitsEach, 1u, std::min(kMost, fitting));
  std::vector<uint32_t> alternatives;
  for (uint32_t slices = 1; slices <= std::min({kMostTried, fitting, units}); slices *= 2) {
    alternatives.push_back(slices);
  }
  return tunable(ctx, "slices", standard, std::move(alternatives));
}

}  // namespace

Result<void> record_matvec_tile(Context& ctx, const Linear& op, const ProductRow& row) {
  const Weight& weight = op.weight;
  const bool gated = op.gate != Activate::kNone;
  const bool begins = op.next.buffer.valid();
  const gpu::Caps& caps = ctx.plan.caps();
  const uint32_t units = weight.k / kUnit;
  const uint32_t slices = slices_of(ctx, units);
  const XViews x = x_views(op, row, 1);

  Launch launch{.variant = row.name};
  launch.substitutions = {{"weights/format", weight_fragment(weight.format, row.q8)},
                          {"matvec/tile_x", row.q8 ? "matvec/tile_x_q8" : "matvec/tile_x_f32"}};
  uint32_t first_tile = 0;
  for (const WeightPiece& piece : weight.pieces) {
    const PieceViews views = piece_views(weight, piece);
    const uint32_t tiles = (piece.rows + kTileRows - 1) / kTileRows / (gated ? 2 : 1);
    const uint32_t outputs = gated ? piece.rows / 2 : piece.rows;
    launch.grid.x = std::min(tiles, caps.max_workgroups);
    launch.grid.y = (tiles + launch.grid.x - 1) / launch.grid.x;
    launch.consts = {u32_const("UNITS", units), u32_const("SLICES", slices), u32_const("SUMS", gated ? 2 : 1),
                     u32_const("GROUPS_X", launch.grid.x), bool_const("HAS_BIAS", op.bias.valid())};
    const auto add_consts = [&](std::initializer_list<gpu::WgslConst> consts) {
      launch.consts.insert(launch.consts.end(), consts);
    };
    const TensorView bias = op.bias.valid() ? op.bias : views.weights;
    const TensorView sums = op.x.square_sums.valid() ? op.x.square_sums : views.weights;
    if (!begins) {
      add_consts({bool_const("NORMED", op.x.square_sums.valid()), f32_const("NORM_EPS", op.x.norm_eps)});
    }
    if (gated) {
      launch.entry = "matvec/matvec_tile_gate";
      launch.layout = wgsl::matvec_tile_gate::kLayout;
      add_consts({u32_const("GATE_TILES", tiles), u32_const("ACTIVATE", static_cast<uint32_t>(op.gate)),
                  bool_const("HAS_Y", op.y.valid()), bool_const("HAS_Q8", op.y_q8.valid()),
                  u32_const("Q8_PLANE1", q8_plane1_offset(1, outputs) / 4)});
      launch.bindings = {views.weights,
                         views.scales,
                         x.x,
                         x.scales,
                         sums,
                         bias,
                         op.y.valid() ? op.y : unused_binding(ctx),
                         op.y_q8.valid() ? op.y_q8 : unused_binding(ctx)};
    } else if (begins) {
      launch.entry = "matvec/matvec_tile_residual";
      launch.layout = wgsl::matvec_tile_residual::kLayout;
      add_consts({u32_const("N", piece.rows), bool_const("H_IS_Q8", op.next.q8),
                  u32_const("Q8_PLANE1", q8_plane1_offset(1, weight.n) / 4),
                  u32_const("H_SUMS", BegunNorm::sums_offset(weight.n, op.next.q8) / 4)});
      launch.bindings = {views.weights, views.scales,   x.x,  x.scales,
                         bias,          op.next.weight, op.y, op.next.buffer};
    } else if (op.best.valid()) {
      launch.entry = "matvec/matvec_tile_best";
      launch.layout = wgsl::matvec_tile_best::kLayout;
      add_consts({u32_const("N", piece.rows), u32_const("FIRST_ROW", piece.first_row),
                  u32_const("FIRST_TILE", first_tile), bool_const("HAS_Y", op.y.valid())});
      launch.bindings = {views.weights, views.scales, x.x,
                         x.scales,      sums,         op.y.valid() ? op.y : unused_binding(ctx),
                         op.best};
    } else {
      launch.entry = "matvec/matvec_tile";
      launch.layout = wgsl::matvec_tile::kLayout;
      add_consts({u32_const("N", piece.rows), u32_const("FIRST_ROW", piece.first_row),
                  u32_const("Y_FIRST", op.y_column + piece.first_row),
                  bool_const("ACCUMULATE", op.accumulate)});
      launch.bindings = {views.weights, views.scales, x.x, x.scales, sums, bias, op.y};
    }
    launch.fixed_bytes = piece_bytes(weight, piece);
    launch.bytes = (row.q8 ? q8_bytes(1, weight.k) : uint64_t{4} * weight.k) +
                   uint64_t{4} * outputs * (op.accumulate ? 2 : 1);
    launch.operations = uint64_t{2} * piece.rows * weight.k;
    DP_CHECK(dispatch(ctx, launch));
    first_tile += tiles;
  }
  return {};
}

Result<void> record_matvec_tile_pair(Context& ctx, const LinearPair& op, const ProductRow& first,
                                     const ProductRow& second) {
  const Weight& a = op.first;
  const Weight& b = op.second;
  const uint32_t units = a.k / kUnit;
  const PieceViews views = piece_views(a, a.pieces[0]), second_views = piece_views(b, b.pieces[0]);
  const Linear reader{.weight = a, .x = op.x};
  const XViews x = x_views(reader, first, 1);
  const std::string_view fragment = first.q8 ? "matvec/tile_x_q8" : "matvec/tile_x_f32";
  const std::string name =
      format_text("%s+%s", std::string(first.name).c_str(), weight_format_info(b.format).name);
  Launch launch{
      .variant = name, .entry = "matvec/matvec_tile_pair", .layout = wgsl::matvec_tile_pair::kLayout};
  launch.substitutions = {{"weights/format", weight_fragment(a.format, first.q8)},
                          {"second_weights/format", weight_fragment(b.format, second.q8)},
                          {"matvec/tile_x", fragment}};
  launch.consts = {u32_const("UNITS", units),
                   u32_const("SLICES", slices_of(ctx, units)),
                   u32_const("SUMS", 1),
                   u32_const("FIRST_TILES", a.n / kTileRows),
                   bool_const("NORMED", op.x.square_sums.valid()),
                   f32_const("NORM_EPS", op.x.norm_eps)};
  launch.bindings = {views.weights,
                     views.scales,
                     second_views.weights,
                     second_views.scales,
                     x.x,
                     x.scales,
                     op.x.square_sums.valid() ? op.x.square_sums : views.weights,
                     op.y};
  launch.grid = {.x = (a.n + b.n) / kTileRows};
  launch.fixed_bytes = piece_bytes(a, a.pieces[0]) + piece_bytes(b, b.pieces[0]);
  launch.bytes = (first.q8 ? q8_bytes(1, a.k) : uint64_t{4} * a.k) + uint64_t{4} * (a.n + b.n);
  launch.operations = uint64_t{2} * (a.n + b.n) * a.k;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
