// From logits to the next token, on the GPU. Greedy: argmax, the lowest id wins a tie. Sampled, in this order:
// repetition, presence and frequency penalties over the recent tokens, logit bias, top-k, top-p, min-p (both on
// the softmax of what is left), temperature, one draw. The draw is a counter-based hash of (seed, generated), so
// the same seed gives the same text on the same device and lane, however the steps are batched.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/context.h"

namespace doppler::kernels {

// Written by the host when a generation starts; the WGSL twin is sample/params.wgsl.
struct SampleParams {
  float temperature = 0.8f;     // > 0; greedy is a plan of its own
  float top_p = 0.95f;          // 1: off
  float min_p = 0.0f;           // 0: off
  uint32_t top_k = 40;          // 0: off
  float repeat_penalty = 1.0f;  // 1: off; logits > 0 are divided, others multiplied (Keskar et al. 2019)
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  uint32_t bias_count = 0;      // entries of the bias list in use
};
inline constexpr uint32_t kMaxLogitBias = 1024;

struct Sample {
  TensorView logits;   // f32 [vocab_size]; may be changed
  TensorView params;   // SampleParams, 256 bytes
  TensorView bias;     // kMaxLogitBias x (u32 token, f32 added)
  TensorView counts;   // u32 [vocab_size]: how often each token is among the penalised recent ones; maintained by
                       // the step kernel and, for the prompt, by the host
  TensorView token;    // u32 [1]: the choice
  uint32_t vocab_size = 0;
  bool greedy = false; // argmax of the plain logits
  float softcap = 0;   // 0: none; final logits = c * tanh(logits / c)
  float logit_scale = 1.0f;  // logits are multiplied by it (granite: 1 / logits_scaling)
};
Result<void> record(Context& ctx, const Sample& op);

}  // namespace doppler::kernels
