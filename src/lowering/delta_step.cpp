// delta_step: the nodes between the two products of a gated delta layer, in one dispatch if each row of the step is of
// another sequence. A step of one row has dispatches too small for a device: only their number counts.
#include "kernels/recurrent/delta_step.h"

#include "lowering/recurrent.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_delta_step(Lowering& l, uint32_t index) {
  const std::optional<uint32_t> delta = l.only_reader(l.node(index).outputs[0], OpKind::kGatedDelta);
  if (!delta) return not_matched();
  const std::optional<uint32_t> norm = l.only_reader(l.node(*delta).outputs[0], OpKind::kGatedNorm);
  if (!norm) return not_matched();
  kernels::DeltaStep op;
  DP_TRY(op.conv, causal_conv_op(l, index));
  kernels::Context ctx = l.context(index);
  if (ctx.max_rows != 1 && !op.conv.single_rows && !l.io().keeps_rows) {
    return refused("the step has several rows of a sequence");
  }
  if (l.io().keeps_rows) op.rows = ctx.max_rows;
  DP_TRY(op.scan, gated_delta_op(l, *delta));
  DP_TRY(op.norm, gated_norm_op(l, *norm));
  const Value y = l.node(*norm).outputs[0];
  DP_TRY(const Wanted wanted, l.wanted(y));
  if (wanted.f16) return refused("its output is read as f16 tiles");
  std::string reason = kernels::refuse_delta_step(ctx, op);
  if (!reason.empty()) return refused(std::move(reason));
  DP_TRY(op.norm.y, l.rows_for(y, "gated_norm", /*may_skip_f32=*/true));
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(y, op.norm.y);
  l.cover(*delta);
  l.cover(*norm);
  return applied();
}

}  // namespace doppler::lowering
