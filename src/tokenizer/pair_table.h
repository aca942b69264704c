// (left id, right id) -> the merge of the two: its rank and the id of the result. 16 bytes a slot, half full
// at most.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "tokenizer/hash.h"

namespace doppler::tokenizer {

struct Merge {
  static constexpr uint32_t kNoRank = UINT32_MAX;
  uint32_t rank = kNoRank;  // lower is merged first
  int32_t id = -1;
  bool possible() const { return rank != kNoRank; }
};

class PairTable {
 public:
  // Must be called with the number of pairs before the first add().
  void reset(size_t count) { slots_.assign(std::bit_ceil(count + count / 3 + 2), Slot{}); }
  // The first rank given for a pair stays.
  void add(int32_t left, int32_t right, Merge merge) {
    Slot& slot = slots_[place(key_of(left, right))];
    if (!slot.merge.possible()) slot = {key_of(left, right), merge};
  }
  Merge find(int32_t left, int32_t right) const { return slots_[place(key_of(left, right))].merge; }

 private:
  struct Slot {
    uint64_t key = 0;
    Merge merge;
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t place(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t at = mix_bits(key) & mask;
    while (slots_[at].merge.possible() && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }
  std::vector<Slot> slots_;
};

}  // namespace doppler::tokenizer
