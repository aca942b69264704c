// Drafting or not, over scripted rates: no GPU.
#include "engine/scheduler/draft_policy.h"

#include <gtest/gtest.h>

namespace doppler::engine {
namespace {

constexpr uint32_t kSteps = 16;  // of a ticket

// The number of tickets that drafted, if a step takes these seconds and a draft is right in `accepted` of 16 steps.
uint32_t drafting_tickets(DraftPolicy policy, uint32_t tickets, double plain, double drafting,
                          uint32_t accepted) {
  uint32_t drafted = 0;
  for (uint32_t i = 0; i < tickets; ++i) {
    const bool drafts = policy.choose(kSteps);
    policy.note(drafts, kSteps + (drafts ? accepted : 0), kSteps * (drafts ? drafting : plain));
    drafted += drafts ? 1 : 0;
  }
  return drafted;
}

TEST(DraftPolicy, DraftsWhereThatIsFaster) {
  const DraftPolicy policy(DraftUse::kWhereFaster);
  // Two rows take 1.3 times as long as one: 30 % of the drafts must be right.
  EXPECT_EQ(drafting_tickets(policy, 60, 1.0, 1.3, 12), 58u);  // all but the trial of plain steps
  EXPECT_EQ(drafting_tickets(policy, 60, 1.0, 1.3, 2), 4u);    // the trial of drafts
}

TEST(DraftPolicy, TriesBothAgain) {
  const DraftPolicy policy(DraftUse::kWhereFaster);
  EXPECT_EQ(drafting_tickets(policy, 128, 1.0, 1.3, 2), 8u);
}

TEST(DraftPolicy, KeepsToWhatWasAsked) {
  EXPECT_EQ(drafting_tickets(DraftPolicy(DraftUse::kAlways), 60, 1.0, 9.0, 0), 60u);
  EXPECT_EQ(drafting_tickets(DraftPolicy(DraftUse::kNever), 60, 1.0, 0.1, 16), 0u);
}

}  // namespace
}  // namespace doppler::engine
