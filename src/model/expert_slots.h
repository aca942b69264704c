// Says which expert of a layer lies in which slot of GPU memory. The least recently used gives way. If a step wants
// more experts than there are slots, they come in turns.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace doppler::model {

inline constexpr uint32_t kNoPlace = 0xFFFFFFFFu;

class ExpertSlots {
 public:
  ExpertSlots(uint32_t n_experts, uint32_t n_slots)
      : slot_of_(n_experts, kNoPlace), expert_of_(n_slots, kNoPlace), used_(n_slots) {}

  struct Upload {
    uint32_t expert = 0, slot = 0;
  };
  // The work of one turn: the uploads come first, then the experts are there.
  struct Turn {
    std::vector<Upload> uploads;
    std::vector<uint32_t> slot_of;  // by expert: kNoPlace: not of this turn
  };
  // Each wanted expert is in one turn. The wanted experts are all different and below n_experts. Those that are there
  // already are in the first turn.
  std::vector<Turn> turns(std::span<const uint32_t> wanted);

 private:
  void use(Turn& turn, uint32_t expert, uint32_t slot);

  std::vector<uint32_t> slot_of_;    // by expert
  std::vector<uint32_t> expert_of_;  // by slot
  std::vector<uint64_t> used_;       // by slot: when
  uint64_t now_ = 0;
};

}  // namespace doppler::model
