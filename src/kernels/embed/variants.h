// The rows of embed and embed_norm, for record() and for the tests that force each.
#pragma once

#include <span>

#include "kernels/embed/embed.h"
#include "kernels/embed/embed_norm.h"
#include "kernels/variant.h"

namespace doppler::kernels {

std::span<const Variant<Embed>> embed_variants();
std::span<const Variant<EmbedNorm>> embed_norm_variants();

}  // namespace doppler::kernels
