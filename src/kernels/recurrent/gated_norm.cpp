// Checks and records gated_norm.
#include "kernels/recurrent/gated_norm.h"

#include "base/activation_fn.h"
#include "kernels/recurrent/gated_norm.wgsl.h"
#include "kernels/recurrent/output_forms.h"
#include "kernels/recurrent/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kGatedNormMostInvocations = 256;

constexpr Variant<GatedNorm> kGatedNormRows[] = {{"gated_norm.portable"}};

}  // namespace

std::span<const Variant<GatedNorm>> gated_norm_variants() { return kGatedNormRows; }

Result<void> record(Context& ctx, const GatedNorm& op) {
  if (op.group == 0 || op.n % op.group != 0 || op.gate_column + op.n > op.gates_stride) {
    return fail(ErrorKind::kInternal, "gated_norm of %u columns in groups of %u, gates from column %u of %u.",
                op.n, op.group, op.gate_column, op.gates_stride);
  }
  if ((op.y.q8.valid() || op.y.f16.valid()) && op.group % kQ8Block != 0) {
    return fail(
        ErrorKind::kUnsupported,
        "gated_norm writes groups of %u columns only as f32; in 8 bits and f16 they are multiples of %u.",
        op.group, kQ8Block);
  }
  const uint64_t rows = ctx.max_rows;
  DP_CHECK(check_view(op.x, rows * op.n * sizeof(float), "x of gated_norm"));
  DP_CHECK(check_view(op.gates, rows * op.gates_stride * sizeof(float), "gates of gated_norm"));
  DP_CHECK(
      check_view(op.weight, (op.shares_weight ? op.group : op.n) * sizeof(float), "weight of gated_norm"));
  DP_CHECK(check_forms(ctx, op.y, op.n, "gated_norm"));
  DP_TRY(const auto row, select("gated_norm", gated_norm_variants(), op,
                                format_text("%ux%u", op.n / op.group, op.group), ctx));
  Launch launch{.variant = row->name, .entry = "recurrent/gated_norm", .layout = wgsl::gated_norm::kLayout};
  launch.consts = {
      u32_const("WORKGROUP", workgroup_for(ctx.plan.caps(), (op.group + 3) / 4, kGatedNormMostInvocations)),
      u32_const("GROUPS", op.n / op.group),
      u32_const("GROUP", op.group),
      u32_const("GATES_STRIDE", op.gates_stride),
      u32_const("GATE_COLUMN", op.gate_column),
      bool_const("GATE_FIRST", op.gate_first),
      bool_const("SHARES_WEIGHT", op.shares_weight),
      u32_const("ACTIVATE", static_cast<uint32_t>(ActivationFn::kSilu)),
      f32_const("EPS", op.eps)};
  launch.bindings = {op.x, op.gates, op.weight};
  add_forms(ctx, launch, op.y, op.n);
  launch.grid = {.x = op.n / op.group, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = 8ull * op.n + form_bytes(op.y, op.n);
  launch.operations = 10ull * op.n;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
