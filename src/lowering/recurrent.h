// Shared by the plain rules of layers with a state and the rule that joins them: the kernels of nodes, without the
// views that only a dispatch of their own has (y; x of scan and of gated_norm).
#pragma once

#include "kernels/recurrent/causal_conv.h"
#include "kernels/recurrent/gated_norm.h"
#include "kernels/recurrent/scan.h"
#include "lowering/lowering.h"

namespace doppler::lowering {

Result<kernels::CausalConv> causal_conv_op(Lowering& l, uint32_t index);
Result<kernels::Scan> gated_delta_op(Lowering& l, uint32_t index);
Result<kernels::GatedNorm> gated_norm_op(Lowering& l, uint32_t index);

}  // namespace doppler::lowering
