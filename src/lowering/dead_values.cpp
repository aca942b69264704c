// dead_values: in a plan without logits no node reads the last layer's sum, so attention there only fills its cache.
// The walk itself leaves out nodes that feed nothing at all (Lowering::find_live).
#include "lowering/attention_inputs.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_dead_attention(Lowering& l, uint32_t index) {
  if (!l.readers(l.node(index).outputs[0]).empty()) return not_matched();
  DP_TRY(AttentionOps ops, attention_ops(l, index));
  DP_CHECK(settle_row_norms(l, index, ops));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, ops.rope));
  return applied();
}

}  // namespace doppler::lowering
