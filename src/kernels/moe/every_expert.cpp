// Checks and records every_expert. One row in the table: it is once a step.
#include "kernels/moe/every_expert.h"

#include "kernels/common/dispatch.h"
#include "kernels/moe/every_expert.wgsl.h"
#include "kernels/moe/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kEveryExpertMostInvocations = 64;

constexpr Variant<EveryExpert> kEveryExpertRows[] = {{.name = "every_expert.portable"}};

}  // namespace

std::span<const Variant<EveryExpert>> every_expert_variants() { return kEveryExpertRows; }

Result<void> record(Context& ctx, const EveryExpert& op) {
  const uint32_t n = op.y.n_experts;
  if (n == 0 || op.y.n_used != n) {
    return fail(ErrorKind::kInternal, "%u of %u experts are not every one.", op.y.n_used, n);
  }
  DP_CHECK(check_view(op.y.view, op.y.bytes(ctx.max_rows), "routes of every_expert"));
  DP_TRY(const auto row, select("every_expert", every_expert_variants(), op, format_text("%u", n), ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), 2 * n, kEveryExpertMostInvocations);
  Launch launch{.variant = row->name, .entry = "moe/every_expert", .layout = wgsl::every_expert::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup), u32_const("N_EXPERTS", n)};
  launch.bindings = {op.y.view};
  launch.grid = {.x = (2 * n + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = op.y.bytes(1);
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
