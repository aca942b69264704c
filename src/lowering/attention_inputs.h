// Shared by the rules of attention: q, k and v as a product left them, and the operations that rotate, fill the cache
// and attend.
#pragma once

#include "kernels/attention/attention.h"
#include "lowering/lowering.h"

namespace doppler::lowering {

struct AttentionOps {
  kernels::RopeKv rope;
  kernels::Attention attention;  // without `rope`
};
// Attention as the node says, but its q.
kernels::Attention attention_op(const Lowering& l, uint32_t attention_node);
// Error: q, k and v do not lie beside one another, or only one of q and k is normalised or rotated.
// q and k that are not alike are rotated where they lie first.
Result<AttentionOps> attention_ops(Lowering& l, uint32_t attention_node);

// Normalises q and k in place, if their norms are of whole rows: rope_kv does not do it.
Result<void> settle_row_norms(Lowering& l, uint32_t attention_node, AttentionOps& ops);

// Records a norm's node in place, where the product left its heads; a norm of all columns is one of a single head.
// Error: others read them after it.
Result<void> norm_in_place(Lowering& l, uint32_t norm_node, const Columns& columns, uint32_t head_dim,
                           float eps);

// Rotates heads where they lie, and scales them by their position; they are plain columns then. Error: heads that are
// still to be normalised.
Result<void> settle_heads(Lowering& l, uint32_t node, Value heads, Value settled,
                          const graph::QueryScale& scale = {});

// The reason why the reader of y (attention's result or its gated form) does not reduce splits of the keys itself; ""
// if it does.
Result<std::string> refuse_reader_reduces(Lowering& l, Value y);

// Records the resolved attention, into buffers for the readers of y: its result or, with a gate, the gate's.
Result<void> record_attention(Lowering& l, uint32_t attention_node, const kernels::AttentionChoice& choice,
                              const kernels::Attention& op, Value y);

}  // namespace doppler::lowering
