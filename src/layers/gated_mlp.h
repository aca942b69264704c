// The gated feed-forward layer (Shazeer 2020): down(activation(gate(h)) * up(h)).
#pragma once

#include "layers/builder.h"

namespace doppler::layers {

Value gated_mlp(Builder& b, Value h, uint32_t layer);  // [R, H]

}  // namespace doppler::layers
