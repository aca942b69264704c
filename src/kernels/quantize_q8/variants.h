// The rows of quantize_q8, for record() and for the test that forces each.
#pragma once

#include <span>

#include "kernels/linear/linear.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<QuantizeQ8>> quantize_q8_variants();

}  // namespace doppler::kernels
