// Checks and records layer_norm.
#include "kernels/layer_norm/layer_norm.h"

#include <bit>

#include "kernels/common/dispatch.h"
#include "kernels/common/measured.h"
#include "kernels/layer_norm/layer_norm_portable.wgsl.h"
#include "kernels/recurrent/output_forms.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kLayerNormMostInvocations = 256;
constexpr uint32_t kQuadsOfManyRows = 4;  // an invocation's: many rows fill a device with small workgroups

uint32_t layer_norm_workgroup(const Context& ctx, uint32_t n) {
  const uint32_t quads = (n + 3) / 4;
  const bool is_small = ctx.max_rows > kRowsThatFill && quads >= kQuadsOfManyRows;
  return workgroup_for(ctx.plan.caps(), is_small ? std::bit_floor(quads / kQuadsOfManyRows) : quads,
                       kLayerNormMostInvocations);
}

constexpr Variant<LayerNorm> kLayerNormRows[] = {{"layer_norm.portable"}};

}  // namespace

std::span<const Variant<LayerNorm>> layer_norm_variants() { return kLayerNormRows; }

Result<void> record(Context& ctx, const LayerNorm& op) {
  if (op.n == 0) return fail(ErrorKind::kInternal, "layer_norm of rows of 0 values.");
  DP_CHECK(check_view(op.x, uint64_t{ctx.max_rows} * op.n * sizeof(float), "x of layer_norm"));
  DP_CHECK(check_view(op.weights, (op.has_bias ? 2ull : 1ull) * op.n * sizeof(float), "layer_norm's weight"));
  DP_CHECK(check_forms(ctx, op.y, op.n, "layer_norm"));
  DP_TRY(const auto row, select("layer_norm", layer_norm_variants(), op, format_text("%u", op.n), ctx));
  Launch launch{.variant = row->name,
                .entry = "layer_norm/layer_norm_portable",
                .layout = wgsl::layer_norm_portable::kLayout};
  launch.consts = {u32_const("WORKGROUP", layer_norm_workgroup(ctx, op.n)), u32_const("N", op.n),
                   bool_const("HAS_BIAS", op.has_bias), f32_const("EPS", op.eps)};
  launch.bindings = {op.x, op.weights};
  add_forms(ctx, launch, op.y, op.n);
  launch.grid = {.rows_axis = 0, .rows_per_group = 1};
  launch.bytes = 4ull * op.n + form_bytes(op.y, op.n);
  launch.fixed_bytes = 8ull * op.n;
  launch.operations = 8ull * op.n;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
