#include "model/expert_slots.h"

#include <algorithm>

namespace doppler::model {

void ExpertSlots::use(Turn& turn, uint32_t expert, uint32_t slot) {
  turn.slot_of[expert] = slot;
  used_[slot] = ++now_;
}

std::vector<ExpertSlots::Turn> ExpertSlots::turns(std::span<const uint32_t> wanted) {
  const auto empty = [&] { return Turn{.uploads = {}, .slot_of = std::vector(slot_of_.size(), kNoPlace)}; };
  std::vector<Turn> turns = {empty()};
  uint64_t begun = now_;  // slots used since this time are this turn's
  for (const uint32_t expert : wanted) {
    if (slot_of_[expert] != kNoPlace) use(turns.back(), expert, slot_of_[expert]);
  }
  for (const uint32_t expert : wanted) {
    if (turns.front().slot_of[expert] != kNoPlace) continue;
    auto oldest = std::ranges::min_element(used_);
    if (*oldest > begun) {
      turns.push_back(empty());
      begun = now_;
    }
    const auto slot = static_cast<uint32_t>(oldest - used_.begin());
    if (expert_of_[slot] != kNoPlace) slot_of_[expert_of_[slot]] = kNoPlace;
    expert_of_[slot] = expert;
    slot_of_[expert] = slot;
    turns.back().uploads.push_back({.expert = expert, .slot = slot});
    use(turns.back(), expert, slot);
  }
  return turns;
}

}  // namespace doppler::model
