// Tests which experts come to which slots, and in how many turns.
#include "model/expert_slots.h"

#include <gtest/gtest.h>

namespace doppler::model {
namespace {

using Experts = std::vector<uint32_t>;

std::vector<Experts> uploads(ExpertSlots& slots, const Experts& wanted) {
  std::vector<Experts> out;
  for (const ExpertSlots::Turn& turn : slots.turns(wanted)) {
    Experts& experts = out.emplace_back();
    for (const ExpertSlots::Upload& upload : turn.uploads) experts.push_back(upload.expert);
  }
  return out;
}

TEST(ExpertSlots, TheLeastRecentlyUsedGivesWay) {
  ExpertSlots slots(4, 2);
  EXPECT_EQ(uploads(slots, {0, 1}), (std::vector<Experts>{{0, 1}}));
  EXPECT_EQ(uploads(slots, {0}), (std::vector<Experts>{{}}));
  EXPECT_EQ(uploads(slots, {2}), (std::vector<Experts>{{2}}));
  EXPECT_EQ(uploads(slots, {0, 2}), (std::vector<Experts>{{}}));
  EXPECT_EQ(uploads(slots, {1}), (std::vector<Experts>{{1}}));
  EXPECT_EQ(uploads(slots, {2, 1}), (std::vector<Experts>{{}}));
}

TEST(ExpertSlots, MoreThanThereAreSlotsComeInTurns) {
  ExpertSlots slots(5, 2);
  EXPECT_EQ(uploads(slots, {3}), (std::vector<Experts>{{3}}));
  EXPECT_EQ(uploads(slots, {0, 1, 2, 3, 4}), (std::vector<Experts>{{0}, {1, 2}, {4}}));
}

TEST(ExpertSlots, EachExpertIsInOneTurn) {
  ExpertSlots slots(6, 2);
  const Experts wanted = {5, 3, 1, 0, 2};
  const auto turns = slots.turns(wanted);
  for (const uint32_t expert : wanted) {
    size_t there = 0;
    for (const ExpertSlots::Turn& turn : turns) there += turn.slot_of[expert] != kNoPlace ? 1 : 0;
    EXPECT_EQ(there, 1u) << expert;
  }
}

}  // namespace
}  // namespace doppler::model
