// The sampling chain of sample.h in double precision on the CPU, step by step as its comment says.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/sample/sample.h"

namespace doppler::kernels::testing {

struct SampleInput {
  std::vector<float> logits;
  SampleParams params;
  std::vector<std::pair<uint32_t, float>> bias;
  std::vector<uint32_t> counts;  // empty: all zero
  float softcap = 0;
  float logit_scale = 1;
  // Input of more.h; the defaults are those of a plan without it.
  uint32_t generated = 0;
  float mu = 0;
  uint32_t xtc_random = 0;
  std::vector<uint32_t> stop_tokens;
  std::vector<uint32_t> history;
  std::vector<uint32_t> breakers;
};

struct SampleOracle {
  std::vector<uint32_t> kept;     // ids that can be drawn, best first
  std::vector<uint64_t> weights;  // of each, in units of 2^-31
  uint32_t draw(uint32_t random) const;
  float mu_after(const SampleInput& input, uint32_t token) const;  // of mirostat
};
SampleOracle sample_oracle(const SampleInput& input);

std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

}  // namespace doppler::kernels::testing
