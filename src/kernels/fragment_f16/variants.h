// The rows of fragment_f16, for record() and for the test that forces each.
#pragma once

#include <span>

#include "kernels/linear/linear.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<FragmentF16>> fragment_f16_variants();

}  // namespace doppler::kernels
