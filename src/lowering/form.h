// Where and how a value of the graph lies while a plan is recorded. Producers choose it by what their readers take; a
// form that says how a value is still to be made (DeferredNorm, AddRmsNorm, SplitPartials, SplitSums, Heads,
// LaterProduct) is made by its reader.
#pragma once

#include <optional>
#include <variant>

#include "graph/ops.h"
#include "kernels/common/forms.h"
#include "kernels/moe/routes.h"

namespace doppler::lowering {

using gpu::TensorView;
using kernels::AddRmsNorm;
using kernels::DeferredNorm;
using kernels::Rows;
using kernels::SplitPartials;
using kernels::SplitSums;

// Columns [column, column + n) of f32 rows of `stride`: one of the outputs of a product of several matrices.
struct Columns {
  TensorView buffer;
  uint32_t stride = 0, column = 0;
};

// Heads of q or k as a product left them, which attention normalises and rotates.
struct Heads {
  Columns columns;
  bool is_normed = false;
  float norm_eps = 0;
  std::optional<uint32_t> row_norm;  // the node, if all of q or k is normalised at once
  bool is_rotated = false;
  graph::Rope rope;
};

// Experts of rows, and the same by expert once a product needs it (kernels/moe/routes.h).
struct Routed {
  kernels::Routes routes;
};

// The outputs of a linear node that its one reader makes, in the product's epilogue.
struct LaterProduct {
  uint32_t linear = 0;  // node
};

// monostate: not made yet.
using Form = std::variant<std::monostate, Rows, Columns, Heads, DeferredNorm, AddRmsNorm, SplitPartials,
                          SplitSums, Routed, LaterProduct>;

}  // namespace doppler::lowering
