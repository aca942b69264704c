// The rows of the operations on latents, for record() and for the test that forces each.
#pragma once

#include <span>

#include "kernels/latent/latent.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<HeadPart>> head_part_variants();
std::span<const Variant<LatentHeads>> latent_heads_variants();

}  // namespace doppler::kernels
