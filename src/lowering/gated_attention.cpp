// gated_attention: attention of a decode step that multiplies its result by the sigmoid of a gate, which the product of
// q, k and v made beside them. A kernel that rotates does that too, in parts of the keys as well as for all keys: the
// gate is a factor of both.
#include "lowering/attention_inputs.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_gated_attention(Lowering& l, uint32_t index) {
  const std::optional<uint32_t> gate = l.only_reader(l.node(index).outputs[0], OpKind::kOutputGate);
  if (!gate || l.node(index).reads_earlier_cache()) return not_matched();
  if (!l.is_on("fused_rope")) return refused("fused_rope is off, and only its variants gate");
  DP_TRY(AttentionOps ops, attention_ops(l, index));
  const auto* columns = l.form_as<Columns>(l.node(*gate).inputs[1]);
  if (!columns || columns->buffer != ops.rope.qkv) return refused("the gate does not lie beside q, k and v");
  const Value y = l.node(*gate).outputs[0];
  ops.attention.rope = &ops.rope;
  ops.attention.gate_column = columns->column;
  DP_TRY(const std::string reason, refuse_reader_reduces(l, y));
  ops.attention.reader_reduces = reason.empty();
  DP_TRY(const kernels::AttentionChoice choice, kernels::resolve_attention(l.context(index), ops.attention));
  if (!choice.rotates) return refused(choice.choice.variant + " takes q rotated");
  DP_CHECK(record_attention(l, index, choice, ops.attention, y));
  l.cover(*gate);
  return applied();
}

}  // namespace doppler::lowering
