// Inverse frequencies of rotary position embedding under the published scalings, in double precision.
// Sources: Su et al. 2021 (plain), Chen et al. 2023 (linear), Llama 3.1 (llama3), Peng et al. 2023 (yarn), Ding et al.
// 2024 (longrope); parameters as in transformers' modeling_rope_utils.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/architectures/config.h"

namespace doppler::formats {

struct RopeFrequencies {
  std::vector<double> inv_freq;   // rotary_dim / 2
  float attention_factor = 1.0f;  // multiplies cosine and sine
};

// The tensors in which GGUF files have longrope's factors.
inline constexpr const char *kLongFactors = "rope_factors_long.weight",
                            *kShortFactors = "rope_factors_short.weight";

// The tensor whose contents are the divisors of a session of so many positions; empty: there is none.
std::string divisors_tensor(const RopeConfig& rope, uint32_t ctx_len);

// Longrope's attention factor, by the factor of the original context's extension.
double longrope_attention_factor(double factor, double original_ctx_len);

// ctx_len: positions the session will use; decides between longrope's short and long factors. max_ctx_len: what the
// model was made for. divisors: contents of divisors_tensor(), or empty.
Result<RopeFrequencies> rope_frequencies(const RopeConfig& rope, uint32_t ctx_len, uint32_t max_ctx_len,
                                         std::span<const float> divisors);

}  // namespace doppler::formats
