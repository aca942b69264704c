// Linear recurrences over the rows of each sequence, with a state of a matrix a head, S [key_dim, value_dim] in f32:
//   S = decay S + key addition^T,  y = S^T query
// The gated delta rule (Yang et al. 2024), of gated delta nets: keys and queries at length 1 (eps 1e-6 in the root),
// queries times key_dim^-0.5, decay = exp(A softplus(a + dt_bias)), addition = sigmoid(b) * (value - decay S^T key).
// Mamba 2 (Dao and Gu 2024): key B, query C, dt = softplus(dt + dt_bias), decay = exp(A dt), addition = dt x, and y
// gets D x. A state before position 0 is zero. Error bound: relative L2 < 1e-5 over 64 rows.
#pragma once

#include "kernels/context.h"
#include "kernels/recurrent/causal_conv.h"

namespace doppler::kernels {

enum class ScanRule : uint8_t { kGatedDelta, kMamba2 };

struct Scan {
  ScanRule rule = ScanRule::kGatedDelta;
  TensorView x;  // f32 [rows, x_stride()]: gated delta q, k, v; Mamba 2 x, B, C
  TensorView
      gates;  // f32 rows of gates_stride: a or dt of each head from gate_column on, b from rate_column on
  uint32_t gates_stride = 0, gate_column = 0, rate_column = 0;
  TensorView vectors;        // f32 [n_heads] each: A, dt_bias, and D of Mamba 2
  TensorView state;          // f32 [state_slots(), n_heads, key_dim, value_dim]
  TensorView y;              // f32 [rows, n_heads * value_dim]
  uint32_t n_heads = 0;      // of values
  uint32_t n_key_heads = 0;  // divides n_heads: head h has keys of head h / (n_heads / n_key_heads)
  bool is_tiled = false;     // ... of head h % n_key_heads: the order of GGUF files
  uint32_t key_dim = 0, value_dim = 0;
  bool single_rows = false;  // each row of the step is of another sequence

  uint32_t x_stride() const { return 2 * n_key_heads * key_dim + n_heads * value_dim; }
  uint64_t state_floats() const { return uint64_t{n_heads} * key_dim * value_dim; }  // of a slot
};
Result<void> record(Context& ctx, const Scan& op);

}  // namespace doppler::kernels
