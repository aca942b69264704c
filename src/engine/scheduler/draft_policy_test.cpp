// The rows of the next steps, over scripted outcomes: no GPU. Whole answers: engine/drafts_test.cpp.
#include "engine/scheduler/draft_policy.h"

#include <gtest/gtest.h>

#include "engine/scheduler/text_index.h"

namespace doppler::engine {
namespace {

constexpr uint32_t kSteps = 16;  // of a ticket
constexpr uint32_t kRows[] = {2, 4, 8};

// Costs at which a step of n rows takes 1 + further * (n - 1).
StepCosts costs_with(double further) {
  StepCosts costs;
  for (const uint32_t rows : {1u, 2u, 4u, 8u}) {
    for (int i = 0; i < 2; ++i) costs.note(rows, 16, 16 * (1 + further * (rows - 1)));
  }
  return costs;
}

// Returns the rows of the last of `tickets`. In each step `run` drafts are right, and the next one is wrong.
uint32_t rows_after(DraftPolicy& policy, const StepCosts& costs, uint32_t tickets, uint32_t run) {
  DraftSteps steps;
  for (uint32_t i = 0; i < tickets; ++i) {
    steps = policy.choose(kRows, costs, kSteps, true);
    const uint32_t right = std::min(run, steps.rows - 1);
    policy.note({.rows = steps.rows,
                 .steps = steps.steps,
                 .tokens = steps.steps * (1 + right),
                 .accepted = steps.steps * right,
                 .failed = right < steps.rows - 1 ? steps.steps : 0},
                costs);
  }
  return steps.rows;
}

TEST(DraftPolicy, TakesTheRowsThatGiveMost) {
  const StepCosts cheap = costs_with(0.05), dear = costs_with(0.4);
  DraftPolicy all_right(DraftUse::kWhereFaster), few(DraftUse::kWhereFaster), costly(DraftUse::kWhereFaster);
  EXPECT_EQ(rows_after(all_right, cheap, 60, 7), 8u);
  EXPECT_EQ(rows_after(few, cheap, 60, 1), 4u);
  EXPECT_EQ(rows_after(costly, dear, 200, 1), 2u);
}

TEST(DraftPolicy, BeginsSmallAndGrows) {
  const StepCosts costs = costs_with(0.15);
  DraftPolicy policy(DraftUse::kWhereFaster);
  const DraftSteps first = policy.choose(kRows, costs, kSteps, true);
  EXPECT_LE(first.steps * (costs.of(first.rows) - 1), DraftPolicy::kFirstAccount);
  EXPECT_GT(first.rows, 1u);
  const uint32_t accepted = first.steps * (first.rows - 1);
  policy.note(
      {.rows = first.rows, .steps = first.steps, .tokens = first.steps + accepted, .accepted = accepted},
      costs);
  const DraftSteps second = policy.choose(kRows, costs, kSteps, true);
  EXPECT_GT(second.steps * second.rows, first.steps * first.rows);
}

// The costs of more rows are not known yet. The account bears that they cost as much as single steps.
TEST(DraftPolicy, WaitsWhereCostsAreNotKnown) {
  const StepCosts unknown;
  DraftPolicy policy(DraftUse::kWhereFaster);
  uint32_t tokens = 0;
  for (; policy.choose(kRows, unknown, kSteps, true).rows == 1; tokens += kSteps)
    policy.note({.rows = 1, .steps = kSteps, .tokens = kSteps}, unknown);
  EXPECT_GE(tokens, 50u);
  EXPECT_LE(tokens, 64u);
}

TEST(DraftPolicy, StopsWhereDraftsAreWrong) {
  const StepCosts costs = costs_with(0.15);
  DraftPolicy policy(DraftUse::kWhereFaster);
  EXPECT_EQ(rows_after(policy, costs, 40, 7), 8u);
  uint32_t lost = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    const DraftSteps steps = policy.choose(kRows, costs, kSteps, true);
    if (steps.rows > 1) lost += steps.steps;
    policy.note({.rows = steps.rows, .steps = steps.steps, .tokens = steps.steps, .failed = steps.steps},
                costs);
  }
  EXPECT_LT(lost, 400u);  // of 3,200
  EXPECT_LT(policy.acceptance(), 0.1);
}

TEST(DraftPolicy, DoesNotBeginWhereNothingIsFound) {
  const StepCosts costs = costs_with(0.05);
  DraftPolicy policy(DraftUse::kWhereFaster);
  EXPECT_EQ(policy.choose(kRows, costs, kSteps, false).rows, 1u);
  EXPECT_EQ(rows_after(policy, costs, 40, 7), 8u);
  EXPECT_EQ(policy.choose(kRows, costs, kSteps, false).rows, 8u);  // what is in flight may say more
}

// Plain steps show what guesses are worth, so no step with drafts finds it out.
TEST(DraftPolicy, TriesNothingThatItForesees) {
  const StepCosts costs = costs_with(0.15);
  DraftPolicy policy(DraftUse::kWhereFaster);
  for (uint32_t i = 0; i < 200; ++i) {
    policy.foresee(0, 3);
    EXPECT_FALSE(policy.wants(true));
    EXPECT_EQ(policy.choose(kRows, costs, kSteps, true).rows, 1u);
    policy.note({.rows = 1, .steps = kSteps, .tokens = kSteps}, costs);
  }
}

TEST(DraftPolicy, BeginsWhenForeseenGuessesAreRight) {
  const StepCosts costs = costs_with(0.15);
  DraftPolicy policy(DraftUse::kWhereFaster);
  policy.foresee(3, 1);
  EXPECT_FALSE(policy.wants(true));  // too few to make plans for
  policy.foresee(14, 0);
  EXPECT_TRUE(policy.wants(true));
  EXPECT_GT(policy.choose(kRows, costs, kSteps, true).rows, 1u);
  policy.foresee(0, 30);
  EXPECT_EQ(policy.choose(kRows, costs, kSteps, true).rows, 1u);
}

TEST(TextIndex, CountsWhatItWouldHaveGuessed) {
  TextIndex index;
  Guesses none = index.add(std::vector<uint32_t>{1, 2, 3, 4, 5, 9});
  EXPECT_EQ(none.right + none.wrong, 0u);
  EXPECT_FALSE(index.repeats());
  const Guesses same = index.add(std::vector<uint32_t>{1, 2, 3, 4, 5});  // 4 and 5 follow 1, 2, 3
  EXPECT_EQ(same.right, 2u);
  EXPECT_EQ(same.wrong, 0u);
  EXPECT_TRUE(index.repeats());
  EXPECT_EQ(index.drafts(2), (std::vector<uint32_t>{9, 1}));
  const Guesses other = index.add(std::vector<uint32_t>{7, 8});
  EXPECT_EQ(other.right, 0u);
  EXPECT_EQ(other.wrong, 1u);  // 7 instead of 9; nothing followed that
}

TEST(DraftPolicy, KeepsToWhatWasAsked) {
  const StepCosts costs = costs_with(9);
  DraftPolicy always(DraftUse::kAlways), never(DraftUse::kNever);
  EXPECT_EQ(rows_after(always, costs, 60, 0), 8u);
  EXPECT_EQ(rows_after(never, costs, 60, 7), 1u);
  EXPECT_EQ(always.choose({}, costs, kSteps, true).rows, 1u);
}

}  // namespace
}  // namespace doppler::engine
