// split_k_reduction: the splits of attention's keys (flash-decoding) are reduced by the product that reads the result,
// instead of by a dispatch between the two.
#include "lowering/attention_inputs.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_split_k_reduction(Lowering& l, uint32_t index) {
  if (l.node(index).reads_earlier_cache()) return not_matched();
  if (!l.is_on("fused_rope")) return refused("fused_rope is off, and only its variants leave splits");
  const Value y = l.node(index).outputs[0];
  DP_TRY(std::string reason, refuse_reader_reduces(l, y));
  if (!reason.empty()) return refused(std::move(reason));
  DP_TRY(AttentionOps ops, attention_ops(l, index));
  ops.attention.rope = &ops.rope;
  ops.attention.reader_reduces = true;
  DP_TRY(const kernels::AttentionChoice choice, kernels::resolve_attention(l.context(index), ops.attention));
  if (!choice.leaves) return refused(choice.choice.variant + " leaves no splits to its reader");
  DP_CHECK(record_attention(l, index, choice, ops.attention, y));
  return applied();
}

}  // namespace doppler::lowering
