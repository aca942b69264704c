// From the public options of a generation to what a runner takes.
#pragma once

#include "doppler/doppler.h"
#include "model/step_runner.h"

namespace doppler::engine {

struct GeneratorConfig {
  uint32_t vocab_size = 0;
  std::vector<uint32_t> stop_tokens;
  uint32_t batch = model::kDefaultBatch;  // decode steps of a submit, where the options do not say
};

// Errors: a number out of its range, a logit bias outside the vocabulary. max_batch: StepRunner's.
Result<void> check_options(const GenerateOptions& options, const GeneratorConfig& config, uint32_t max_batch);
model::GenerationSettings settings_of(const GenerateOptions& options, const GeneratorConfig& config,
                                      uint32_t max_tokens, uint64_t seed);

// What remains of a full context that slides, in tokens: the newer half, and at least the token to go on from.
ptrdiff_t kept_by_slide(uint32_t ctx_len);
// Behind so many slides the random numbers are another stream.
uint64_t seed_of_segment(uint64_t seed, uint32_t slides);

}  // namespace doppler::engine
