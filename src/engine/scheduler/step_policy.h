// What goes into a step, as pure functions: how many rows of prompts beside the decoding slots and whose, and how many
// decode steps at once. Read next: scheduler.h, which asks them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/sequence_runner.h"

namespace doppler::engine {

// Rows of prompts in a step in which others decode. A row of prefill costs 1/32 to 1/50 of a decode step of one slot on
// an H200 (README.md: 1,850 and 80,420 tok/s for llama-3.2-1b, 850 and 30,231 for 3b, 509 and 16,288 for 8b). Behind
// 32,000 tokens such a step takes 24.8 ms instead of 5.3 (8 streams of the 8b): attention's part grows with the depth.
inline constexpr uint32_t kPrefillShare = model::kPiecesBesideDecoding;
// Decode steps of a ticket while others wait for a slot or blocks: a sequence that ends holds them for so long.
inline constexpr uint32_t kShortSteps = 4;

struct PromptNeed {
  uint64_t client = 0;
  uint32_t rows = 0;  // left to evaluate
};
// Rows for each prompt, which are in order of their beginning; 0: it waits. The budget is split evenly among clients,
// so that nobody's long prompt keeps others from their first token; of a client's prompts the oldest goes first, and
// what one client leaves goes to the oldest of all. At most `max_pieces` get rows.
std::vector<uint32_t> split_rows(std::span<const PromptNeed> needs, uint32_t budget, uint32_t max_pieces);

struct StepLimits {
  uint32_t most = 0;        // that the runner or the configuration allows
  uint32_t least_left = 0;  // tokens that the nearest end of a decoding slot is away
  bool others_wait = false;
};
uint32_t decode_steps(const StepLimits& limits);

}  // namespace doppler::engine
