// The rows of this folder's operations, for record() and for the tests that force each.
#pragma once

#include <span>

#include "kernels/recurrent/causal_conv.h"
#include "kernels/recurrent/delta_step.h"
#include "kernels/recurrent/gated_norm.h"
#include "kernels/recurrent/output_gate.h"
#include "kernels/recurrent/scan.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<CausalConv>> causal_conv_variants();
std::span<const Variant<DeltaStep>> delta_step_variants();
std::span<const Variant<GatedNorm>> gated_norm_variants();
std::span<const Variant<OutputGate>> output_gate_variants();
std::span<const Variant<Scan>> scan_variants();

}  // namespace doppler::kernels
