// The rows of add, for record() and for the test that forces each.
#pragma once

#include <span>

#include "kernels/add/add.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<Add>> add_variants();

}  // namespace doppler::kernels
