// Tests which scratch tensors may share a buffer, on hand-made cases and on random plans.
#include "gpu/scratch_placement.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace doppler::gpu {
namespace {

TEST(ScratchPlacement, SharesOnlyBetweenLivesThatNeverMeet) {
  const std::vector<ScratchTensor> tensors = {
      {.bytes = 100, .lives = {{0, 0, 1}}},            // dies at command 1 ...
      {.bytes = 400, .lives = {{0, 1, 2}}},            // ... which also uses this: no sharing
      {.bytes = 200, .lives = {{0, 2, 3}}},            // may take the first one's place
      {.bytes = 999, .lives = {}},                     // never used: no memory
      {.bytes = 50, .lives = {{1, 0, 9}}},             // another plan: shares with any
      {.bytes = 60, .lives = {{0, 9, 9}, {1, 3, 3}}},  // meets the one before in plan 1
  };
  const ScratchPlacement placement = place_scratch(tensors);
  EXPECT_EQ(placement.physical, (std::vector<uint32_t>{1, 0, 1, UINT32_MAX, 0, 1}));
  EXPECT_EQ(placement.sizes, (std::vector<uint64_t>{400, 200}));
}

TEST(ScratchPlacement, HoldsForRandomPlans) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ScratchTensor> tensors(1 + random() % 30);
    for (ScratchTensor& tensor : tensors) {
      tensor.bytes = 4 * (1 + random() % 1000);
      for (uint32_t plan = 0; plan < 3; ++plan) {
        const auto first = static_cast<uint32_t>(random() % 50);
        if (random() % 3) tensor.lives.push_back({plan, first, first + static_cast<uint32_t>(random() % 20)});
      }
    }
    const ScratchPlacement placement = place_scratch(tensors);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].lives.empty()) continue;
      ASSERT_LT(placement.physical[i], placement.sizes.size());
      EXPECT_GE(placement.sizes[placement.physical[i]], tensors[i].bytes);
      for (size_t j = 0; j < i; ++j) {
        if (placement.physical[i] != placement.physical[j]) continue;
        for (const Lifetime& a : tensors[i].lives) {
          for (const Lifetime& b : tensors[j].lives) {
            EXPECT_FALSE(a.plan == b.plan && a.first <= b.last && b.first <= a.last);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace doppler::gpu
