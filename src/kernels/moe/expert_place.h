// The constants of moe/expert_place.wgsl.
#pragma once

#include <vector>

#include "gpu/wgsl_composer.h"
#include "kernels/moe/expert_linear.h"

namespace doppler::kernels {

void add_place_consts(const ExpertLinear& op, const WeightPiece& piece, std::vector<gpu::WgslConst>& consts);

}  // namespace doppler::kernels
