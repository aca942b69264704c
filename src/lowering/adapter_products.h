// The products of low-rank adapters beside a node's own (kernels/low_rank): recorded by the rules of linear and embed
// nodes, which ask first what an adapter forbids. A node that no adapter may change is lowered as without adapters.
#pragma once

#include <optional>
#include <string>

#include "lowering/lowering.h"

namespace doppler::lowering {

// The first product of a linear node's adapters, low = A x: recorded before the node's own product, since neither waits for
// the other. Gives the second one, which adds up to a row of y: f32 [rows, stride], the node's outputs beside one another.
// Nothing, where the node has no adapters.
Result<std::optional<kernels::LowRankUp>> record_low(Lowering& l, uint32_t linear_node);
// The second, if there is one: y += B low, or y = gain * y + B low + constant.
Result<void> record_up(Lowering& l, uint32_t linear_node, std::optional<kernels::LowRankUp> up, TensorView y,
                       uint32_t stride);
// Both, before a product that adds to y: where no adapter has a gain the order does not matter.
Result<void> record_in_sum(Lowering& l, uint32_t linear_node, TensorView y, uint32_t stride);
// Likewise of an embed node, whose rows are y.
Result<void> record_embedding_adapter(Lowering& l, uint32_t embed_node, TensorView y);

// Why what adapters make of a linear node cannot be added to the sum that the node's outputs are added to; "" if it can.
std::string refuse_adapter_in_sum(const Lowering& l, uint32_t linear_node);

}  // namespace doppler::lowering
