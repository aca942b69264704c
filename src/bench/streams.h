// Many streams that generate together: their total speed, and how smoothly one stream comes. Each has a prompt of its
// own, whose first `depth` tokens are in the cache before the clock starts. The clock runs from the moment at which all
// streams have a token until the first stream ends, so that all streams decode all the time.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "bench/workload.h"
#include "engine/api_impl.h"

namespace doppler::bench {

// Tokens that came to a stream's reader at a time.
struct Arrival {
  double seconds = 0;
  uint32_t tokens = 0;
};

struct StreamFigures {
  double rate = 0;           // tok/s of all streams together: the sum of each one's
  double token_seconds = 0;  // median over the arrivals of all streams: the wait for one, over its tokens
  double longest_wait = 0;   // seconds between two arrivals of one stream, the most of all
  model::DraftTally drafts = {};
};
// Each stream counts from its first arrival in the common window to its last one there. No value: one has not two.
std::optional<StreamFigures> stream_figures(std::span<const std::vector<Arrival>> streams);

// Runs the test once. `edits` is Settings::draft_edits.
// Errors: a model loaded for fewer sequences, a cache without room for all streams, a test too
// short for two arrivals.
Result<StreamFigures> time_streams(Model& model, const Test& test, uint32_t edits = 0);

}  // namespace doppler::bench
