// Makes an adapter with random numbers for all matrices in the layers of a given shape, to measure speed.
#pragma once

#include "formats/adapters/adapter.h"
#include "formats/architectures/config.h"

namespace doppler::formats {

Adapter synthetic_adapter(const ModelConfig& model, uint32_t rank);

}  // namespace doppler::formats
