// y = x W_e^T + b_e for each expert e that a row is sent to. One or two matrices (gate and up) an expert, stacked: all
// experts of the first matrix, then all of the second. Weights are read as stored (base/dtype.h).
// Error bound: f32 arithmetic, relative L2 < 1e-5 against double precision on the same weights; dp4a and matrix
// variants as in linear/linear.h.
#pragma once

#include <optional>
#include <string>

#include "kernels/linear/linear.h"
#include "kernels/moe/routes.h"

namespace doppler::kernels {

struct ExpertLinear {
  // Rows (matrix * n_experts + expert) * n .. of n outputs. Pieces hold whole experts; two matrices lie in one piece.
  const Weight& weight;
  uint32_t n = 0;         // outputs of one matrix of an expert
  uint32_t matrices = 1;  // stacked in `weight`
  Rows x;                 // [rows, k]; x_per_slot: [rows, n_used * k], a row of x for each slot
  bool x_per_slot = false;
  Routes routes;
  TensorView bias = {};  // optional f32, a number for each row of the weight
  // f32 [rows, y_stride]: matrix m of slot s fills the columns y_column + (m * n_used + s) * n ...
  TensorView y = {};
  uint32_t y_stride = 0, y_column = 0;
  // Instead of y, of two matrices: activate(first) * second, gate->y [rows, n_used * n] as f32, q8 or both.
  std::optional<Gate> gate = {};
};

// The variant for products with an expert's n outputs of the weight, chosen once: record() does not choose again.
Result<ProductChoice> resolve_expert_product(const Context& ctx, const Weight& weight, uint32_t n);
// Why products of this variant do not gate their outputs; "" if they do.
std::string refuse_expert_gate(const ProductChoice& choice, ActivationFn activation);
// True if the variant takes rows in groups: then op.routes.groups are there (group_routes.h).
bool reads_groups(const ProductChoice& choice);
// Errors: views that are missing or too small; pieces that split an expert. If the variant reads x in 8 bits and x is
// not there in that form, a dispatch before it makes the form.
Result<void> record(Context& ctx, const ProductChoice& choice, const ExpertLinear& op);

}  // namespace doppler::kernels
