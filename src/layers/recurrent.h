// Mixers with a recurrent state, in place of attention: what several families share. R rows, H hidden.
#pragma once

#include "layers/builder.h"

namespace doppler::layers {

// LFM2's convolution with two gates: out(C * conv(B * v)), [B, C, v] = in(h).
Value short_conv(Builder& b, Value h, uint32_t layer);  // [R, H]
// Gated delta net (Yang et al. 2024) as Qwen 3.5 has it.
Value gated_delta_net(Builder& b, Value h, uint32_t layer);  // [R, H]
// Mamba 2 (Dao and Gu 2024) with a gated norm of each group of its values.
Value mamba2(Builder& b, Value h, uint32_t layer);  // [R, H]

// Attention with normalised heads and a sigmoid gate on its output, as it stands between gated delta nets.
Value gated_attention(Builder& b, Value h, uint32_t layer);  // [R, H]

}  // namespace doppler::layers
