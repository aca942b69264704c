// matvec_tile.h: products that reduce the splits of attention, their input (SplitPartials).
// Read next: tile_splits.wgsl.
#include <algorithm>

#include "kernels/linear/matvec/matvec_tile.h"
#include "kernels/linear/matvec/matvec_tile_residual_splits.wgsl.h"
#include "kernels/linear/matvec/matvec_tile_splits.wgsl.h"

namespace doppler::kernels {
namespace {

// An invocation for every four columns, up to so many, which every device has.
constexpr uint32_t kInvocations = 256;

}  // namespace

Result<void> record_matvec_tile_splits(Context& ctx, const Product& op) {
  const Weight& weight = op.weight;
  const ProductRow& row = op.row;
  const SplitPartials& x = *op.prologue_as<SplitPartials>();
  const auto* defer = op.epilogue_as<AddResidualDeferNorm>();
  const Outputs y = op.outputs();
  const TileShape shape = tile_shape(
      ctx, op,
      {.outputs = weight.n,
       .least_invocations = std::min({weight.k / 4, kInvocations, ctx.plan.caps().max_invocations})});
  const PieceViews views = piece_views(weight, weight.pieces[0]);
  Launch launch{.variant = row.name};
  launch.substitutions = {
      {"linear/weights/format", weight_fragment(weight.format, row.q8)},
      {"linear/matvec/tile_x", row.q8 ? "linear/matvec/tile_x_splits" : "linear/matvec/tile_x_splits_f32"}};
  launch.consts = tile_consts(shape);
  for (const gpu::WgslConst& value :
       {u32_const("SPLITS", x.splits), u32_const("KEYS_PER_SPLIT", x.keys_per_split),
        u32_const("CTX_LEN", x.ctx_len), u32_const("WINDOW", x.window == 0 ? UINT32_MAX : x.window),
        u32_const("N_HEADS", x.n_heads), u32_const("HEAD_DIM", x.head_dim),
        bool_const("HAS_BIAS", op.bias.valid())}) {
    launch.consts.push_back(value);
  }
  const TensorView bias = op.bias.valid() ? op.bias : views.weights;
  if (defer) {
    choose_block_fragments(ctx, launch);
    launch.entry = "linear/matvec/matvec_tile_residual_splits";
    launch.layout = wgsl::matvec_tile_residual_splits::kLayout;
    for (const gpu::WgslConst& value :
         {bool_const("H_IS_Q8", defer->norm.q8), u32_const("Q8_PLANE1", q8_plane1_offset(1, weight.n) / 4),
          u32_const("H_SUMS", DeferredNorm::sums_offset(weight.n, defer->norm.q8) / 4)}) {
      launch.consts.push_back(value);
    }
    launch.bindings = {views.weights, views.scales,       x.partials, ctx.state,
                       bias,          defer->norm.weight, y.f32,      defer->norm.buffer};
  } else {
    launch.entry = "linear/matvec/matvec_tile_splits";
    launch.layout = wgsl::matvec_tile_splits::kLayout;
    launch.consts.push_back(u32_const("Y_FIRST", y.column));
    launch.consts.push_back(bool_const("ACCUMULATE", y.adds));
    launch.bindings = {views.weights, views.scales, x.partials, ctx.state, bias, y.f32};
  }
  launch.grid = {.x = weight.n / shape.rows};
  set_costs(op, weight.pieces[0], launch);
  launch.bytes = x.bytes() + uint64_t{4} * weight.n * (y.adds ? 2 : 1);
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
