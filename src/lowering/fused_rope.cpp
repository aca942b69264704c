// fused_rope: attention of a decode step that normalises and rotates q and k and fills the cache in its own dispatch.
#include "lowering/attention_inputs.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_fused_rope(Lowering& l, uint32_t index) {
  if (l.node(index).reads_earlier_cache()) return not_matched();
  DP_TRY(AttentionOps ops, attention_ops(l, index));
  ops.attention.rope = &ops.rope;
  const Value y = l.node(index).outputs[0];
  DP_TRY(const std::string reason, refuse_reader_reduces(l, y));
  ops.attention.reader_reduces = reason.empty();  // of a variant that could leave splits, and has one
  DP_TRY(const kernels::AttentionChoice choice, kernels::resolve_attention(l.context(index), ops.attention));
  if (!choice.rotates) return refused(choice.choice.variant + " takes q rotated");
  DP_CHECK(record_attention(l, index, choice, ops.attention, y));
  return applied();
}

}  // namespace doppler::lowering
