// The rows of embed, for record() and for the test that forces each.
#pragma once

#include <span>

#include "kernels/embed/embed.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<Embed>> embed_variants();

}  // namespace doppler::kernels
