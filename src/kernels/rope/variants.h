// The rows of rope_kv, for record() and for the test that forces each.
#pragma once

#include <span>

#include "kernels/rope/rope.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<RopeKv>> rope_kv_variants();

}  // namespace doppler::kernels
