// The costs that steps are taken to have.
#include "engine/scheduler/step_costs.h"

#include <gtest/gtest.h>

#include "engine/scheduler/text_index.h"

namespace doppler::engine {
namespace {

// The first ticket of each is not counted.
void note_twice(StepCosts& costs, uint32_t rows, double took) {
  costs.note(rows, 1, 100);
  costs.note(rows, 10, took * 10);
}

TEST(StepCosts, AreThoseMeasured) {
  StepCosts costs;
  EXPECT_EQ(costs.line(), "");
  note_twice(costs, 1, 0.002);
  note_twice(costs, 4, 0.003);
  EXPECT_DOUBLE_EQ(costs.of(1), 1);
  EXPECT_DOUBLE_EQ(costs.of(4), 1.5);
  EXPECT_EQ(costs.line(), "steps of 1, 4 rows take 2.00, 3.00 ms");
}

TEST(StepCosts, GuessWhatWasNotMeasured) {
  StepCosts costs;
  EXPECT_GT(costs.of(8), costs.of(2));
  EXPECT_GT(costs.of(2), 1);
  note_twice(costs, 1, 0.002);
  note_twice(costs, 2, 0.003);
  EXPECT_DOUBLE_EQ(costs.of(4), 2.5);
  EXPECT_DOUBLE_EQ(costs.of(8), 4.5);
}

TEST(StepCosts, SayWhatIsBeyondPlainSteps) {
  StepCosts costs;
  EXPECT_EQ(costs.beyond(1, 5), 0);  // nothing was measured
  for (int i = 0; i < 2; ++i) costs.note(1, 16, 16 * 0.002);
  EXPECT_NEAR(costs.beyond(2, 0.010), 3, 1e-9);
  EXPECT_EQ(costs.beyond(16, 0.010), 0);
}

TEST(StepCosts, AreNeverThoseOfSingleStepsAndMore) {
  StepCosts costs;
  note_twice(costs, 1, 0.002);
  note_twice(costs, 2, 1);
  EXPECT_DOUBLE_EQ(costs.of(2), 2);
}

TEST(StepCosts, ForgetWhatWas) {
  StepCosts costs;
  note_twice(costs, 1, 0.002);
  note_twice(costs, 2, 0.004);
  for (int i = 0; i < 400; ++i) costs.note(2, 4, 0.010);
  EXPECT_NEAR(costs.of(2), 1.25, 0.01);
}

TEST(TextIndex, SaysWhetherTheLastTokensStoodBefore) {
  TextIndex index;
  const uint32_t first[] = {1, 2, 3, 4, 5, 1, 2};
  index.add(first);
  EXPECT_FALSE(index.repeats());
  const uint32_t third[] = {3};
  index.add(third);
  EXPECT_TRUE(index.repeats());
  EXPECT_EQ(index.drafts(3), (std::vector<uint32_t>{4, 5, 1}));
  const uint32_t other[] = {9};
  index.add(other);
  EXPECT_FALSE(index.repeats());
  EXPECT_TRUE(index.drafts(3).empty());
}

TEST(TextIndex, OneRepeatedTokenRepeats) {
  TextIndex index;
  const uint32_t token[] = {7};
  for (int i = 0; i < 3; ++i) index.add(token);
  EXPECT_FALSE(index.repeats());
  index.add(token);
  EXPECT_TRUE(index.repeats());
  EXPECT_EQ(index.drafts(3), (std::vector<uint32_t>{7, 7, 7}));
}

}  // namespace
}  // namespace doppler::engine
