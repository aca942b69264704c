// The drafts that each sequence may have: gains, accounts, and requests that always draft.
#include "engine/scheduler/draft_shares.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace doppler::engine {
namespace {

using Drafts = std::vector<uint32_t>;

constexpr uint32_t kPlanRows[] = {8, 16};

// Steps of 4, 8 and 16 rows that take so long.
StepCosts costs(double of_4, double of_8, double of_16) {
  StepCosts out;
  for (int ticket = 0; ticket < 3; ++ticket) {
    out.note(4, 1, of_4);
    out.note(8, 1, of_8);
    out.note(16, 1, of_16);
  }
  return out;
}

std::vector<DraftOffer> four(DraftOffer each) { return std::vector<DraftOffer>(4, each); }

TEST(DraftShares, MoreRowsAreTakenIfTheyPay) {
  const auto offers = four({.drafts = 7, .acceptance = 0.8, .account = 9});
  EXPECT_EQ(share_drafts(offers, kPlanRows, costs(1, 1.1, 1.3)), (Drafts{3, 3, 3, 3}));
  EXPECT_EQ(share_drafts(offers, kPlanRows, costs(1, 1.1, 2.6)), (Drafts{1, 1, 1, 1}));
  EXPECT_EQ(share_drafts(offers, kPlanRows, costs(1, 1.9, 3.8)), (Drafts{0, 0, 0, 0}));
}

TEST(DraftShares, RowsGoToTheLikeliestDrafts) {
  std::vector<DraftOffer> offers = four({.drafts = 7, .acceptance = 0.5, .account = 9});
  offers[2].acceptance = 0.95;
  offers[3].drafts = 0;
  EXPECT_EQ(share_drafts(offers, {kPlanRows, 1}, costs(1, 1.1, 1.3)), (Drafts{0, 0, 4, 0}));
  offers[2].drafts = 2;
  EXPECT_EQ(share_drafts(offers, {kPlanRows, 1}, costs(1, 1.1, 1.3)), (Drafts{1, 1, 2, 0}));
}

TEST(DraftShares, WhoCannotPayForAllDraftsNothing) {
  std::vector<DraftOffer> offers = four({.drafts = 7, .acceptance = 0.9, .account = 0.05});
  EXPECT_EQ(share_drafts(offers, kPlanRows, costs(1, 1.1, 1.3)), (Drafts{0, 0, 0, 0}));
  offers[1].account = 9;
  EXPECT_EQ(share_drafts(offers, kPlanRows, costs(1, 1.1, 1.3)), (Drafts{0, 7, 0, 0}));
}

TEST(DraftShares, LossesAreThoseOfAll) {
  const std::vector<double> losses = losses_of(Drafts{3, 1, 0, 0}, costs(1, 1.5, 2));
  EXPECT_DOUBLE_EQ(losses[0], 1.5);  // of 4 tokens times 0.5
  EXPECT_DOUBLE_EQ(losses[1], 0.5);
  EXPECT_EQ(losses[2], 0);
  EXPECT_EQ(losses_of(Drafts{0, 0}, StepCosts()), (std::vector<double>{0, 0}));
}

TEST(DraftShares, ARequestMayAskForAllItsDrafts) {
  std::vector<DraftOffer> offers = four({.drafts = 7, .acceptance = 0.9, .account = 9});
  offers[0] = {.drafts = 6, .always = true};
  EXPECT_EQ(share_drafts(offers, kPlanRows, costs(1, 2, 4)), (Drafts{6, 0, 0, 0}));
}

TEST(DraftShares, PlansOfTooFewRowsDoNotServe) {
  const auto offers = four({.drafts = 7, .acceptance = 0.9, .account = 9});
  const uint32_t few[] = {2, 4};
  EXPECT_EQ(share_drafts(offers, few, costs(1, 1.1, 1.3)), (Drafts{0, 0, 0, 0}));
  EXPECT_EQ(share_drafts(offers, {}, costs(1, 1.1, 1.3)), (Drafts{0, 0, 0, 0}));
}

}  // namespace
}  // namespace doppler::engine
