#include "openai/usage.h"

#include <algorithm>

namespace doppler::openai {
namespace {

double ratio(double of, double by) { return by > 0 ? of / by : 0; }

}  // namespace

Usage usage_of(const Timings& timings) {
  return {.prompt_tokens = timings.prompt_tokens,
          .cached_tokens = timings.cached_tokens,
          .generated_tokens = timings.generated_tokens,
          .forced_tokens = timings.forced_tokens,
          .preemptions = timings.preemptions,
          .drafted_tokens = timings.drafted_tokens,
          .accepted_tokens = timings.accepted_tokens,
          .queued_seconds = timings.queued_seconds,
          .ttft_seconds = timings.ttft_seconds,
          .decode_seconds = timings.interval_seconds(),
          .total_seconds = timings.ttft_seconds + timings.decode_seconds};
}

Json usage_json(const Usage& usage) {
  Json out = {{"prompt_tokens", usage.prompt_tokens},
              {"completion_tokens", usage.generated_tokens},
              {"total_tokens", usage.prompt_tokens + usage.generated_tokens},
              {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
  if (usage.drafted_tokens != 0) {
    out["completion_tokens_details"] = {
        {"accepted_prediction_tokens", usage.accepted_tokens},
        {"rejected_prediction_tokens", usage.drafted_tokens - usage.accepted_tokens}};
  }
  return out;
}

Json timings_json(const Usage& usage) {
  const auto evaluated = static_cast<double>(usage.prompt_tokens - usage.cached_tokens);
  const double prompt_ms = 1e3 * std::max(0.0, usage.ttft_seconds - usage.queued_seconds);
  // The first token is the prompt's last row's.
  const auto intervals = static_cast<double>(std::max<uint64_t>(usage.generated_tokens, 1) - 1);
  const double predicted_ms = 1e3 * usage.decode_seconds;
  Json out = {{"cache_n", usage.cached_tokens},
              {"prompt_n", usage.prompt_tokens - usage.cached_tokens},
              {"prompt_ms", prompt_ms},
              {"prompt_per_token_ms", ratio(prompt_ms, evaluated)},
              {"prompt_per_second", ratio(1e3 * evaluated, prompt_ms)},
              {"predicted_n", usage.generated_tokens},
              {"predicted_ms", predicted_ms},
              {"predicted_per_token_ms", ratio(predicted_ms, intervals)},
              {"predicted_per_second", ratio(1e3 * intervals, predicted_ms)}};
  if (usage.drafted_tokens != 0) {
    out["draft_n"] = usage.drafted_tokens;
    out["draft_n_accepted"] = usage.accepted_tokens;
  }
  return out;
}

Json progress_json(const Usage& usage, uint64_t evaluated, double seconds) {
  return {{"total", usage.prompt_tokens},
          {"cache", usage.cached_tokens},
          {"processed", usage.cached_tokens + evaluated},
          {"time_ms", 1e3 * seconds}};
}

}  // namespace doppler::openai
