// The rows of the operations on heads, for record() and for the test that forces each.
#pragma once

#include <span>

#include "kernels/heads/heads.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<HeadNorm>> head_norm_variants();
std::span<const Variant<Rotate>> rotate_variants();

}  // namespace doppler::kernels
