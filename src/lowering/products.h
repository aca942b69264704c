// Shared by the rules of linear nodes: recording all parts of a projection.
#pragma once

#include <functional>

#include "lowering/lowering.h"

namespace doppler::lowering {

// Records the products of a linear node. epilogue: of a part, given the columns of rows of projection.n that it makes.
Result<void> record_products(Lowering& l, uint32_t linear_node,
                             const std::function<kernels::Epilogue(const Projection::Part& part)>& epilogue);

// The rms_norm that is the only norm to read a value, among any other readers.
std::optional<uint32_t> norm_of(const Lowering& l, Value value);

// x + y where y is one of an add node's inputs: x.
Value other_input(const Lowering& l, uint32_t add_node, Value y);

// Why a sum cannot be written over x; "" if it can.
std::string refuse_in_place(const Lowering& l, uint32_t add_node, Value x);

}  // namespace doppler::lowering
