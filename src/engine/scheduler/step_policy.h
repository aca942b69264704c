// The content of a step, as pure functions: how many rows of prompts beside the decoding slots and whose, and how many
// decode steps at once. Read next: scheduler.h, which calls them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/sequence_runner.h"

namespace doppler::engine {

// Where more prompts wait than slots decode, a step takes up to so many times the usual share of their rows.
inline constexpr uint32_t kMostShares = 4;
// Decode steps of a ticket while others wait for a slot or blocks: a sequence that ends holds them for so long.
inline constexpr uint32_t kShortSteps = 4;

struct BudgetNeeds {
  uint32_t share = 0;      // SequenceRunner::prompt_share()
  uint32_t rows_left = 0;  // of the step, beside the decoding slots
  size_t decoding = 0;     // slots
  size_t prompts = 0;      // that are being evaluated, or wait in the queue
};
// Rows of prompts in a step. If no slot decodes, all rows that are left; else the share, once for each prompt a
// decoding slot, so that the few who decode do not keep the many from their first token.
uint32_t prompt_budget(const BudgetNeeds& needs);

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
