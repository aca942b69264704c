// Multi-head latent attention (DeepSeek-AI 2024): keys and values of all heads come from one latent a token, and only
// this latent is cached. The matrices that make keys and values of the latent are applied to the query and after the
// sum of values, so that attention is on one head. R rows, H hidden, N = n_heads.
#pragma once

#include "layers/builder.h"

namespace doppler::layers {

Value latent_attention(Builder& b, Value h, uint32_t layer);  // [R, H]

}  // namespace doppler::layers
