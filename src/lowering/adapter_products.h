// Records the products of low-rank adapters beside a node's own (kernels/low_rank). The rules of linear and embed nodes
// call these, and first ask whether an adapter forbids them. A node that no adapter may change is lowered as in a model
// without adapters.
#pragma once

#include <optional>
#include <string>

#include "lowering/lowering.h"

namespace doppler::lowering {

// Records the first product of a linear node's adapters, low = A x, before the node's own product, since neither waits
// for the other. Returns the second product, which adds up to a row of y: f32 [rows, stride], the node's outputs beside
// one another. No value: the node has no adapters.
Result<std::optional<kernels::LowRankUp>> record_low(Lowering& l, uint32_t linear_node);
// Records the second product, if there is one: y += B low, or y = gain * y + B low + constant.
Result<void> record_up(Lowering& l, uint32_t linear_node, std::optional<kernels::LowRankUp> up, TensorView y,
                       uint32_t stride);
// Records both before a product that adds to y. The order does not matter, since no adapter here has a gain.
Result<void> record_in_sum(Lowering& l, uint32_t linear_node, TensorView y, uint32_t stride);
// Records both for an embed node, whose rows are y.
Result<void> record_embedding_adapter(Lowering& l, uint32_t embed_node, TensorView y);

// Says why the adapters' part of a linear node cannot be added to the sum of the node's outputs; "" if it can.
std::string refuse_adapter_in_sum(const Lowering& l, uint32_t linear_node);

}  // namespace doppler::lowering
