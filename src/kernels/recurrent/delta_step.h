// A gated delta layer of one row a sequence, between its products: causal_conv, scan and gated_norm in one dispatch. A
// workgroup makes all value heads of one key head, so that no other reads a state that it moves on.
// Of a drafting step (Context::drafts) two rows of one sequence, one after the other: the state behind row r, of the
// convolution and of the heads, goes to slot r, so that the next step may begin behind either. A row past the step's last
// one is not there: neither its outputs nor its states are written.
// Error bound: as scan and gated_norm, relative L2 < 1e-5.
#pragma once

#include <string>

#include "kernels/recurrent/causal_conv.h"
#include "kernels/recurrent/gated_norm.h"
#include "kernels/recurrent/scan.h"

namespace doppler::kernels {

// conv: without bias and gate, its y is not asked. scan: of the gated delta rule, its x and y are not asked. norm: of heads
// (group = value_dim) that share a weight, behind the norm gated, its x is not asked; y in f32 and 8 bits, not asked by refuse_delta_step().
struct DeltaStep {
  CausalConv conv;
  Scan scan;
  GatedNorm norm;
  uint32_t rows = 1;  // of a run: 1, or in plans of one sequence that draft 2
};
// Why this device or these shapes have no such dispatch; "" if they have. value_dim: a multiple of 16.
std::string refuse_delta_step(const Context& ctx, const DeltaStep& op);
Result<void> record(Context& ctx, const DeltaStep& op);

}  // namespace doppler::kernels
