// Multi-head latent attention (DeepSeek-AI 2024): keys and values of all heads come from one latent a token, which is all that is
// cached. The matrices that make them of it are taken into the query and behind the sum of values, so that attention is on
// one head. R rows, H hidden, N = n_heads.
#pragma once

#include "layers/builder.h"

namespace doppler::layers {

Value latent_attention(Builder& b, Value h, uint32_t layer);  // [R, H]

}  // namespace doppler::layers
