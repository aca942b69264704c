// Checks and records output_gate.
#include "kernels/recurrent/output_gate.h"

#include "base/activation_fn.h"
#include "kernels/recurrent/output_forms.h"
#include "kernels/recurrent/output_gate.wgsl.h"
#include "kernels/recurrent/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kOutputGateMostInvocations =
    64;  // small workgroups spread one row over more of the device

constexpr Variant<OutputGate> kOutputGateRows[] = {{"output_gate.portable"}};

}  // namespace

std::span<const Variant<OutputGate>> output_gate_variants() { return kOutputGateRows; }

Result<void> record(Context& ctx, const OutputGate& op) {
  if (op.n == 0 || op.gate_column + op.n > op.gates_stride) {
    return fail(ErrorKind::kInternal, "output_gate of %u columns, gates from column %u of %u.", op.n,
                op.gate_column, op.gates_stride);
  }
  const uint64_t rows = ctx.max_rows;
  DP_CHECK(check_view(op.x, rows * op.n * sizeof(float), "x of output_gate"));
  DP_CHECK(check_view(op.gates, rows * op.gates_stride * sizeof(float), "gates of output_gate"));
  DP_CHECK(check_forms(ctx, op.y, op.n, "output_gate"));
  DP_TRY(const auto row, select("output_gate", output_gate_variants(), op, format_text("%u", op.n), ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), (op.n + 3) / 4, kOutputGateMostInvocations);
  Launch launch{.variant = row->name, .entry = "recurrent/output_gate", .layout = wgsl::output_gate::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup), u32_const("N", op.n),
                   u32_const("GATES_STRIDE", op.gates_stride), u32_const("GATE_COLUMN", op.gate_column),
                   u32_const("ACTIVATE", static_cast<uint32_t>(ActivationFn::kSilu))};
  launch.bindings = {op.x, op.gates};
  add_forms(ctx, launch, op.y, op.n);
  launch.grid = {.x = (op.n + workgroup * 4 - 1) / (workgroup * 4), .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = 8ull * op.n + form_bytes(op.y, op.n);
  launch.operations = 5ull * op.n;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
