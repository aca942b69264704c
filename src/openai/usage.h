// The tokens and the time of a request, and the objects in which OpenAI's and llama.cpp's APIs tell them.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "doppler/doppler.h"

namespace doppler::openai {

struct Usage {
  uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, forced_tokens = 0, preemptions = 0;
  uint64_t drafted_tokens = 0, accepted_tokens = 0;
  double queued_seconds = 0, ttft_seconds = 0, decode_seconds = 0;
  double total_seconds = 0;  // from the call to the last token
};

// The usage of one choice.
Usage usage_of(const Timings& timings);

// OpenAI's "usage". If tokens were drafted, it has the details of the answer.
Json usage_json(const Usage& usage);
// llama.cpp's "timings": cache_n and prompt_n tokens of the prompt, found and evaluated, and predicted_n of the answer;
// prompt_ms from a place among those that run to the first token, predicted_ms from the first token to the last. If
// tokens were drafted, it also has draft_n and draft_n_accepted.
Json timings_json(const Usage& usage);
// llama.cpp's "prompt_progress": total, cache, processed (cache and what was evaluated), time_ms.
Json progress_json(const Usage& usage, uint64_t evaluated, double seconds);

}  // namespace doppler::openai
