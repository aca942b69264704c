// expert_linear.h for a chunk of rows: an expert's weights are unpacked once for all rows that are sent to it.
#pragma once

#include "kernels/linear/product.h"
#include "kernels/moe/expert_linear.h"

namespace doppler::kernels {

// op is checked, its x there in the form that the row reads, and its routes have groups.
Result<void> record_grouped(Context& ctx, const ProductChoice& choice, const ExpertLinear& op);

}  // namespace doppler::kernels
