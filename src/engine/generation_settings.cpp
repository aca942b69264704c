#include "engine/generation_settings.h"

#include <algorithm>
#include <cmath>

namespace doppler::engine {
namespace {

struct Bound {
  const char* name;
  double value, least, most;
};

Result<void> check_numbers(const GenerateOptions& o, uint32_t max_batch) {
  const SamplingOptions& s = o.sampling;
  const Bound bounds[] = {
      {"temperature", s.temperature, 0, 100},
      {"top-p", s.top_p, 0, 1},
      {"min-p", s.min_p, 0, 1},
      {"repeat-penalty", s.repeat_penalty, 0.01, 100},
      {"presence-penalty", s.presence_penalty, -100, 100},
      {"frequency-penalty", s.frequency_penalty, -100, 100},
      {"batch", static_cast<double>(o.batch), 1, static_cast<double>(max_batch)},
      {"readback-interval", static_cast<double>(o.readback_interval), 1,
       static_cast<double>(max_batch / std::max(1u, o.batch))},
  };
  for (const Bound& bound : bounds) {
    if (!(bound.value >= bound.least && bound.value <= bound.most)) {
      return fail(ErrorKind::kInvalidInput, "Option %s is %g; allowed is %g to %g.", bound.name, bound.value,
                  bound.least, bound.most);
    }
  }
  return {};
}

Result<void> check_biases(const SamplingOptions& options, uint32_t vocab_size) {
  for (const auto& [token, bias] : options.logit_bias) {
    if (token < 0 || static_cast<uint32_t>(token) >= vocab_size) {
      return fail(ErrorKind::kInvalidInput,
                  "The logit bias names token %d, outside the vocabulary; allowed is 0 to %u.", token,
                  vocab_size - 1);
    }
    if (std::isnan(bias)) {
      return fail(ErrorKind::kInvalidInput, "The logit bias of token %d is not a number.", token);
    }
  }
  return {};
}

}  // namespace

Result<void> check_options(const GenerateOptions& options, const GeneratorConfig& config,
                           uint32_t max_batch) {
  DP_CHECK(check_numbers(options, max_batch));
  return check_biases(options.sampling, config.vocab_size);
}

model::GenerationSettings settings_of(const GenerateOptions& o, const GeneratorConfig& config,
                                      uint32_t max_tokens, uint64_t seed) {
  const SamplingOptions& s = o.sampling;
  model::GenerationSettings out;
  // Penalties and biases change the choice even without randomness, so only the plain case takes the greedy
  // plan.
  const bool plain =
      s.repeat_penalty == 1.0f && s.presence_penalty == 0 && s.frequency_penalty == 0 && s.logit_bias.empty();
  out.greedy = s.top_k == 1 ? plain : s.temperature == 0 && plain;
  out.sampling = {.temperature = s.temperature == 0 ? 1.0f : s.temperature,
                  .top_p = s.top_p,
                  .min_p = s.min_p,
                  .top_k = s.temperature == 0 ? 1 : s.top_k,
                  .repeat_penalty = s.repeat_penalty,
                  .presence_penalty = s.presence_penalty,
                  .frequency_penalty = s.frequency_penalty,
                  .bias_count = 0};
  for (const auto& [token, bias] : s.logit_bias)
    out.logit_bias.emplace_back(static_cast<uint32_t>(token), bias);
  out.seed = seed;
  out.max_tokens = max_tokens;
  if (o.stop_on_device) out.stop_tokens = config.stop_tokens;
  out.ignore_stop = o.ignore_eos;
  return out;
}

ptrdiff_t kept_by_slide(uint32_t ctx_len) { return std::max<ptrdiff_t>(1, ctx_len / 2); }

uint64_t seed_of_segment(uint64_t seed, uint32_t slides) {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15ull;
  return seed + slides * kGoldenRatio;
}

}  // namespace doppler::engine
