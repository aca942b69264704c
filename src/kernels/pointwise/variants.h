// The rows of the pointwise operations, for record() and for the test that forces each.
#pragma once

#include <span>

#include "kernels/pointwise/pointwise.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<Scale>> scale_variants();
std::span<const Variant<Xielu>> xielu_variants();
std::span<const Variant<Multiply>> multiply_variants();
std::span<const Variant<Concat>> concat_variants();
std::span<const Variant<Sparsify>> sparsify_variants();
std::span<const Variant<Activate>> activate_variants();

}  // namespace doppler::kernels
