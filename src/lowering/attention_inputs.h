// What the rules of attention share: q, k and v as a product left them, and the operations that rotate, fill the cache and
// attend.
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

// Rotates heads where they lie, and scales them by their position; they are plain columns then. Error: heads that are still
// to be normalised.
Result<void> settle_heads(Lowering& l, uint32_t node, Value heads, Value settled,
                          const graph::QueryScale& scale = {});

// Why what reads attention's result does not reduce splits of the keys itself; "" if it does.
Result<std::string> refuse_reader_reduces(Lowering& l, uint32_t attention_node);

// Records attention as it was resolved, into buffers for its readers.
Result<void> record_attention(Lowering& l, uint32_t attention_node, const kernels::AttentionChoice& choice,
                              const kernels::Attention& op);

}  // namespace doppler::lowering
