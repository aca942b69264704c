// AltUp (Baykal et al. 2023): the number of residual streams, the same in all published models. The numbers of a model,
// its graph and its kernels (kernels/altup) share it.
#pragma once

#include <cstdint>

namespace doppler {

inline constexpr uint32_t kAltupStreams = 4;

}  // namespace doppler
