// Checks and records glu. One row in the table: it is bound by memory, which subgroups do not change.
#include "kernels/glu/glu.h"

#include "kernels/common/dispatch.h"
#include "kernels/glu/glu_portable.wgsl.h"
#include "kernels/glu/variants.h"

namespace doppler::kernels {
namespace {

// Small workgroups spread one row of a few thousand values over more of the device.
constexpr uint32_t kGluMostInvocations = 64;

constexpr Variant<Glu> kGluRows[] = {{.name = "glu.portable"}};

}  // namespace

std::span<const Variant<Glu>> glu_variants() { return kGluRows; }

Result<void> record(Context& ctx, const Glu& op) {
  const uint64_t row_bytes = static_cast<uint64_t>(op.n) * sizeof(float);
  if (op.n == 0 || op.activate == ActivationFn::kNone || op.activate > ActivationFn::kGeluErf) {
    return fail(ErrorKind::kInternal, "glu of rows of %u values with activation %s.", op.n,
                activation_name(op.activate));
  }
  DP_CHECK(check_view(op.gate_up, 2 * ctx.max_rows * row_bytes, "gate_up of glu"));
  if (op.y.f32.valid() || !op.y.f16.valid()) {
    DP_CHECK(check_view(op.y.f32, ctx.max_rows * row_bytes, "y of glu"));
  }
  if (op.y.q8.valid()) {
    if (op.n % 32 != 0) {
      return fail(ErrorKind::kInternal, "Row length (%u) of glu's q8 output is not a multiple of 32.", op.n);
    }
    DP_CHECK(check_view(op.y.q8, q8_bytes(ctx.max_rows, op.n), "q8 of glu"));
  }
  if (op.y.f16.valid()) {
    if (op.n % 16 != 0) {
      return fail(ErrorKind::kInternal, "Row length (%u) of glu's f16 output is not a multiple of 16.", op.n);
    }
    DP_CHECK(check_view(op.y.f16, f16_bytes(ctx.max_rows, op.n), "f16 of glu"));
  }
  DP_TRY(const auto row,
         select("glu", glu_variants(), op, format_text("%s %u", activation_name(op.activate), op.n), ctx));

  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), (op.n + 3) / 4, kGluMostInvocations);
  Launch launch{.variant = row->name, .entry = "glu/glu_portable", .layout = wgsl::glu_portable::kLayout};
  if (op.limit != 0) launch.entry = "glu/glu_limited";
  launch.consts = {u32_const("WORKGROUP", workgroup),
                   u32_const("N", op.n),
                   op.limit != 0 ? f32_const("LIMIT", op.limit)
                                 : u32_const("ACTIVATE", static_cast<uint32_t>(op.activate)),
                   bool_const("HAS_Q8", op.y.q8.valid()),
                   bool_const("HAS_F16", op.y.f16.valid()),
                   bool_const("HAS_F32", op.y.f32.valid()),
                   u32_const("F16_COLUMNS", op.n),
                   u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, op.n) / 4)};
  launch.bindings = {op.gate_up, op.y.f32.valid() ? op.y.f32 : unused_binding(ctx),
                     op.y.q8.valid() ? op.y.q8 : unused_binding(ctx),
                     op.y.f16.valid() ? op.y.f16 : unused_binding(ctx)};
  launch.grid = {.x = (op.n + workgroup * 4 - 1) / (workgroup * 4), .rows_axis = 1, .rows_per_group = 1};
  launch.bytes =
      3 * row_bytes + (op.y.q8.valid() ? op.n + op.n / 4 : 0) + (op.y.f16.valid() ? 2ull * op.n : 0);
  launch.operations = 8ull * op.n;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
