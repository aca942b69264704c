// The rows of argmax and sample, for record() and for the tests that force each.
#pragma once

#include <span>

#include "kernels/sample/sample.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<Sample>> argmax_variants();
std::span<const Variant<Sample>> sample_variants();

}  // namespace doppler::kernels
