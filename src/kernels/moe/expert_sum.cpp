// Checks and records expert_sum. One row in the table: it is bound by memory.
#include "kernels/moe/expert_sum.h"

#include "kernels/common/dispatch.h"
#include "kernels/moe/expert_sum.wgsl.h"
#include "kernels/moe/variants.h"

namespace doppler::kernels {
namespace {

// Small workgroups spread one row of a few thousand values over more of the device.
constexpr uint32_t kExpertSumMostInvocations = 64;

constexpr Variant<ExpertSum> kExpertSumRows[] = {{.name = "expert_sum.portable"}};

}  // namespace

std::span<const Variant<ExpertSum>> expert_sum_variants() { return kExpertSumRows; }

Result<void> record(Context& ctx, const ExpertSum& op) {
  const uint64_t row_bytes = uint64_t{op.n} * sizeof(float);
  const uint32_t used = op.routes.n_used;
  DP_CHECK(check_view(op.x, ctx.max_rows * row_bytes * used, "x of expert_sum"));
  DP_CHECK(check_view(op.routes.view, op.routes.bytes(ctx.max_rows), "routes of expert_sum"));
  if (op.shared.valid()) {
    DP_CHECK(check_view(op.shared, ctx.max_rows * row_bytes, "shared of expert_sum"));
  } else if (op.shared_gate.valid()) {
    return fail(ErrorKind::kInternal, "The gate of %s is there and its shared expert is not.",
                ctx.op_label.c_str());
  }
  if (op.shared_gate.valid()) {
    DP_CHECK(check_view(op.shared_gate, ctx.max_rows * sizeof(float), "shared_gate of expert_sum"));
  }
  DP_CHECK(check_view(op.y, ctx.max_rows * row_bytes, "y of expert_sum"));
  DP_TRY(const auto row,
         select("expert_sum", expert_sum_variants(), op, format_text("%u of %u", used, op.n), ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), op.n, kExpertSumMostInvocations);
  Launch launch{.variant = row->name, .entry = "moe/expert_sum", .layout = wgsl::expert_sum::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup), u32_const("N", op.n), u32_const("N_USED", used),
                   bool_const("HAS_SHARED", op.shared.valid()),
                   bool_const("HAS_GATE", op.shared_gate.valid())};
  launch.bindings = {op.x, op.routes.view, op.shared.valid() ? op.shared : op.x,
                     op.shared_gate.valid() ? op.shared_gate : op.x, op.y};
  launch.grid = {.x = (op.n + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = row_bytes * (used + (op.shared.valid() ? 2 : 1));
  launch.operations = uint64_t{2} * used * op.n;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
