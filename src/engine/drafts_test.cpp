// The rows of steps of one sequence, over a scripted runner with its own clock. Needs no GPU.
#include <gtest/gtest.h>

#include "engine/stream_answer.h"
#include "engine/test_one_runner.h"

namespace doppler::engine {
namespace {

struct DraftScript {
  Counting runner;
  double plain_seconds = 0;  // of the same answer without drafts
  StreamTimings timings;

  explicit DraftScript(std::optional<uint32_t> right_drafts) {
    runner.ctx = 4096;
    runner.right_drafts = right_drafts;
    runner.row_counts = {2, 4, 8};
    runner.cost_of_step = [](uint32_t rows) { return 0.002 * (1 + 0.15 * (rows - 1)); };
  }
  // Returns the seconds that so many tokens take.
  double answer(uint32_t tokens, model::Drafter drafter = model::Drafter::kNextLayer) {
    const auto now = [this] {
      return Clock::time_point(
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(runner.now)));
    };
    auto scheduler = *Scheduler::create(runner, {.vocab_size = 5000, .tickets_ahead = 3, .now = now});
    Request request;
    request.tokens = {1, 2, 3};
    request.settings.max_tokens = tokens;
    request.settings.drafter = drafter;
    request.drafts = DraftPolicy(DraftUse::kWhereFaster);
    const auto stream = *scheduler->submit(std::move(request));
    for (bool more = true; more;) {
      Task<Result<bool>> task = scheduler->turn();
      task.start();
      const Result<bool> turned = task.take();
      EXPECT_TRUE(turned) << turned.error().message();
      more = turned && *turned;
    }
    const std::vector<uint32_t> got = stream->take();
    EXPECT_EQ(got.size(), tokens);
    for (uint32_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], 4 + i);
    timings = stream->timings();
    plain_seconds = runner.cost_of_step(1) * (tokens - 1);
    return runner.now;
  }
};

// Such a drafter costs an answer at most 2 %, whatever rows a step may have.
TEST(Drafting, ADrafterThatIsAlwaysWrongCostsLittle) {
  for (const double further : {0.05, 0.15, 0.5, 1.0}) {
    for (const uint32_t tokens : {64u, 200u, 1000u, 4000u}) {
      DraftScript run(1);
      run.runner.cost_of_step = [&](uint32_t rows) { return 0.002 * (1 + further * (rows - 1)); };
      const double took = run.answer(tokens);
      EXPECT_LE(took, 1.02 * run.plain_seconds) << further << ", " << tokens << " tokens";
      EXPECT_EQ(run.timings.drafts.accepted, 0u);
    }
  }
}

TEST(Drafting, RightDraftsAreUsed) {
  // 90 % of the drafts are right: 8 rows give 5.7 tokens and take 2.05 steps. The policy must first find out what steps
  // take.
  DraftScript run(10);
  const double took = run.answer(1000);
  EXPECT_LE(took, 0.5 * run.plain_seconds);
}

// Tickets beside the first drafts are short, so that their results decide soon.
TEST(Drafting, ShortAnswersGainToo) {
  DraftScript run(10);
  const double took = run.answer(250);
  EXPECT_LE(took, 0.75 * run.plain_seconds);
}

TEST(Drafting, FewRightDraftsAreNotWorthManyRows) {
  DraftScript run(2);  // half: 2 rows give 1.5 tokens and take 1.15 steps, 8 rows 2 and 2.05
  const double took = run.answer(2000);
  EXPECT_LE(took, 0.9 * run.plain_seconds);
}

// The text never repeats itself.
TEST(Drafting, ALookupThatFindsNothingCostsNothing) {
  DraftScript run(10);
  const double took = run.answer(1000, model::Drafter::kLookup);
  EXPECT_NEAR(took, run.plain_seconds, 1e-9);
  EXPECT_EQ(run.runner.drafted, 0u);
}

}  // namespace
}  // namespace doppler::engine
