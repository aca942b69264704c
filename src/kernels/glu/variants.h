// The rows of glu, for record() and for the test that forces each.
#pragma once

#include <span>

#include "kernels/glu/glu.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<Glu>> glu_variants();

}  // namespace doppler::kernels
