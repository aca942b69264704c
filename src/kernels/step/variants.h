// The rows of next, for record() and for the test that forces each.
#pragma once

#include <span>

#include "kernels/step/next.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<Next>> next_variants();

}  // namespace doppler::kernels
