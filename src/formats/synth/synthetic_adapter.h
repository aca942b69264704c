// An adapter with made-up numbers for a model of a given shape, of all matrices in its layers: for measuring speed.
#pragma once

#include "formats/adapters/adapter.h"
#include "formats/architectures/config.h"

namespace doppler::formats {

Adapter synthetic_adapter(const ModelConfig& model, uint32_t rank);

}  // namespace doppler::formats
