// AltUp (Baykal et al. 2023): how many streams of the residual there are, in all published models. What the numbers of a
// model, its graph and its kernels (kernels/altup) share.
#pragma once

#include <cstdint>

namespace doppler {

inline constexpr uint32_t kAltupStreams = 4;

}  // namespace doppler
