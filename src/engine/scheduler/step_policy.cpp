#include "engine/scheduler/step_policy.h"

#include <algorithm>

namespace doppler::engine {

uint32_t prompt_budget(const BudgetNeeds& needs) {
  if (needs.decoding == 0) return needs.rows_left;
  const uint64_t fair = uint64_t{needs.share} * needs.prompts / needs.decoding;
  const uint64_t most = uint64_t{needs.share} * kMostShares;
  const uint64_t rows = std::clamp<uint64_t>(fair, needs.share, most);
  return static_cast<uint32_t>(std::min<uint64_t>(rows, needs.rows_left));
}

std::vector<uint32_t> split_rows(std::span<const PromptNeed> needs, uint32_t budget, uint32_t max_pieces) {
  std::vector<uint32_t> rows(needs.size(), 0);
  std::vector<size_t> firsts;  // the oldest prompt of each client
  for (size_t i = 0; i < needs.size() && firsts.size() < std::min(max_pieces, budget); ++i) {
    const bool known =
        std::ranges::any_of(firsts, [&](size_t f) { return needs[f].client == needs[i].client; });
    if (!known) firsts.push_back(i);
  }
  if (firsts.empty()) return rows;
  uint32_t left = budget;
  const auto share = static_cast<uint32_t>(budget / firsts.size());
  uint32_t pieces = 0;
  for (const size_t i : firsts) {
    rows[i] = std::min(needs[i].rows, share);
    left -= rows[i];
    ++pieces;
  }
  for (size_t i = 0; i < needs.size() && left > 0; ++i) {
    if (rows[i] == 0 && pieces == max_pieces) continue;
    if (rows[i] == 0) ++pieces;
    const uint32_t more = std::min(needs[i].rows - rows[i], left);
    rows[i] += more;
    left -= more;
  }
  return rows;
}

uint32_t decode_steps(const StepLimits& limits) {
  const uint32_t steps = std::min(limits.most, limits.least_left);
  return limits.others_wait ? std::min(steps, kShortSteps) : steps;
}

}  // namespace doppler::engine
