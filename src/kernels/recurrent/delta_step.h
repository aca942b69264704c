// A gated delta layer of one row a sequence, between its products: causal_conv, scan and gated_norm in one dispatch. A
// workgroup makes all value heads of one key head, so that no other reads a state that it moves on.
// A drafting step (Context::drafts) has two rows of one sequence, one after the other. The state after row r, of the
// convolution and of the heads, goes to slot r, so that the next step may begin after either row. A row past the step's
// last one is absent: neither its outputs nor its states are written.
// Error bound: as scan and gated_norm, relative L2 < 1e-5.
#pragma once

#include <string>

#include "kernels/recurrent/causal_conv.h"
#include "kernels/recurrent/gated_norm.h"
#include "kernels/recurrent/scan.h"

namespace doppler::kernels {

// conv: without bias and gate; its y is not used. scan: of the gated delta rule; its x and y are not used. norm: of
// heads (group = value_dim) that share a weight, with the gate after the norm; its x is not used. Its y is in f32 and 8
// bits; refuse_delta_step() does not read it.
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
