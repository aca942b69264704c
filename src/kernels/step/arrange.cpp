// Checks and records the making of a step's tables. Read next: arrange_rows.wgsl.
#include "kernels/step/arrange.h"

#include "kernels/common/tables.h"
#include "kernels/step/arrange_rows.wgsl.h"

namespace doppler::kernels {

Result<void> record(Context& ctx, const Arrange& op) {
  DP_CHECK(check_tables(ctx));
  DP_CHECK(check_view(op.tokens, ctx.tables.rows * kWord, "tokens of arrange"));
  Launch launch{.variant = "arrange.rows",
                .entry = "step/arrange_rows",
                .layout = wgsl::arrange_rows::kLayout,
                .consts = {u32_const("WORKGROUP", kMaxSequences)},
                .bindings = {ctx.state, op.tokens},
                .fixed_bytes = sizeof(StepRequest) + ctx.tables.rows * 2 * kWord};
  add_tables(launch, ctx.tables);
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
