// Checks and records expert_norm; the arithmetic is in expert_norm_row.wgsl.
#include "kernels/moe/expert_norm.h"

#include <array>

#include "kernels/common/dispatch.h"
#include "kernels/moe/expert_norm_portable.wgsl.h"
#include "kernels/moe/expert_norm_subgroup.wgsl.h"
#include "kernels/moe/variants.h"

namespace doppler::kernels {
namespace {

// One row is all there is in decode, so its workgroup takes what the device grants, four values an invocation.
constexpr uint32_t kExpertNormMostInvocations = 1024;

const std::array<Variant<ExpertNorm>, 2> kExpertNormRows = {
    {{.name = "expert_norm.subgroup", .lane = Lane::kSubgroups, .needs = kNeedSubgroups},
     {.name = "expert_norm.portable"}}};

Result<void> check(const Context& ctx, const ExpertNorm& op) {
  const uint64_t row_bytes = uint64_t{op.n} * sizeof(float);
  if (op.n == 0 || op.n % 4 != 0) {
    return fail(ErrorKind::kInternal, "Row length (%u) of expert_norm is not a multiple of 4.", op.n);
  }
  DP_CHECK(check_view(op.x, ctx.max_rows * row_bytes * op.routes.n_used, "x of expert_norm"));
  DP_CHECK(check_view(op.routes.view, op.routes.bytes(ctx.max_rows), "routes of expert_norm"));
  if (op.shared.valid()) {
    DP_CHECK(check_view(op.shared, ctx.max_rows * row_bytes, "shared of expert_norm"));
  } else if (op.shared_gate.valid()) {
    return fail(ErrorKind::kInternal, "The gate of %s is there and its shared expert is not.",
                ctx.op_label.c_str());
  }
  if (op.shared_gate.valid()) {
    DP_CHECK(check_view(op.shared_gate, ctx.max_rows * sizeof(float), "shared_gate of expert_norm"));
  }
  DP_CHECK(check_view(op.residual, ctx.max_rows * row_bytes, "residual of expert_norm"));
  DP_CHECK(check_view(op.weight, row_bytes, "weight of expert_norm"));
  if (op.y.f32.valid() || !op.y.q8.valid()) {
    DP_CHECK(check_view(op.y.f32, ctx.max_rows * row_bytes, "y of expert_norm"));
  }
  if (!op.y.q8.valid()) return {};
  if (op.n % 32 != 0) {
    return fail(ErrorKind::kInternal, "Row length (%u) of expert_norm's q8 output is not a multiple of 32.",
                op.n);
  }
  return check_view(op.y.q8, q8_bytes(ctx.max_rows, op.n), "q8 of expert_norm");
}

}  // namespace

std::span<const Variant<ExpertNorm>> expert_norm_variants() { return kExpertNormRows; }

Result<void> record(Context& ctx, const ExpertNorm& op) {
  DP_CHECK(check(ctx, op));
  const uint64_t row_bytes = uint64_t{op.n} * sizeof(float);
  const uint32_t used = op.routes.n_used;
  DP_TRY(const auto row,
         select("expert_norm", expert_norm_variants(), op, format_text("%u of %u", used, op.n), ctx));
  const bool in_subgroups = (row->needs & kNeedSubgroups) != 0;
  Launch launch{
      .variant = row->name,
      .entry = in_subgroups ? "moe/expert_norm_subgroup" : "moe/expert_norm_portable",
      .layout = in_subgroups ? wgsl::expert_norm_subgroup::kLayout : wgsl::expert_norm_portable::kLayout};
  launch.subgroups = in_subgroups;
  launch.consts = {
      u32_const("WORKGROUP", workgroup_for(ctx.plan.caps(), op.n / 4, kExpertNormMostInvocations)),
      u32_const("N", op.n),
      u32_const("N_USED", used),
      f32_const("EPS", op.eps),
      bool_const("HAS_SHARED", op.shared.valid()),
      bool_const("HAS_GATE", op.shared_gate.valid()),
      bool_const("HAS_F32", op.y.f32.valid()),
      bool_const("HAS_Q8", op.y.q8.valid()),
      u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, op.n) / 4)};
  launch.bindings = {op.x,
                     op.routes.view,
                     op.shared.valid() ? op.shared : op.x,
                     op.shared_gate.valid() ? op.shared_gate : op.x,
                     op.residual,
                     op.weight,
                     op.y.f32.valid() ? op.y.f32 : unused_binding(ctx),
                     op.y.q8.valid() ? op.y.q8 : unused_binding(ctx)};
  launch.grid = {.rows_axis = 0, .rows_per_group = ctx.max_rows == 1 ? 0u : 1u};
  launch.bytes = row_bytes * (used + (op.shared.valid() ? 1 : 0) + 2 + (op.y.f32.valid() ? 1 : 0)) +
                 (op.y.q8.valid() ? q8_bytes(1, op.n) : 0);
  launch.fixed_bytes = row_bytes;
  launch.operations = uint64_t{2} * used * op.n + uint64_t{4} * op.n;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
