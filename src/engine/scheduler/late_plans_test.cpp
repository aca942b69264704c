// Plans that a request is the first to need: it waits for them, and the others go on.
#include <gtest/gtest.h>

#include "engine/scheduler/test_script.h"

namespace doppler::engine {
namespace {

using testing::ask;
using testing::Script;
using testing::StreamPtr;
using testing::text;

// Log-probabilities, grammars and further samplers had to be announced when a model was loaded.
TEST(Scheduler, PlansThatARequestIsTheFirstToNeedAreMadeBesideTheStepsOfOthers) {
  Script s;
  s.runner.lacks_plans = true;
  Request special = ask(text(6), 8, 1), plain = ask(text(5, 2), 12, 2);
  special.settings.greedy = false;
  special.settings.sampling.top_n_sigma = 1;
  const StreamPtr waits = s.submit(special), again = s.submit(special), runs = s.submit(plain);
  s.run_to(*runs, 12);
  EXPECT_EQ(waits->timings().generated_tokens, 0u);
  EXPECT_EQ(s.runner.preparations, 1u);
  Task<Result<bool>> turn = s.scheduler->turn();  // nobody else is left: it waits
  turn.start();
  EXPECT_FALSE(turn.done());
  s.runner.plans_made->complete(Result<void>());
  ASSERT_TRUE(turn.done());
  EXPECT_TRUE(*turn.take());
  s.run();
  s.expect_alone(waits, special);
  s.expect_alone(again, special);
  s.expect_alone(runs, plain);
  EXPECT_EQ(s.runner.preparations, 1u);
}

TEST(Scheduler, PlansThatCannotBeMadeEndThoseWhoNeedThem) {
  Script s;
  s.runner.lacks_plans = true;
  Request special = ask(text(6), 8, 1), plain = ask(text(5, 2), 12, 2);
  special.settings.greedy = false;
  special.settings.sampling.top_n_sigma = 1;
  const StreamPtr fails = s.submit(special), runs = s.submit(plain);
  s.run_to(*runs, 1);
  s.runner.plans_made->complete(fail(ErrorKind::kDevice, "The kernel does not compile."));
  s.run();
  ASSERT_TRUE(fails->error());
  EXPECT_EQ(fails->error()->sentence(), "The kernel does not compile.");
  s.expect_alone(runs, plain);
}

}  // namespace
}  // namespace doppler::engine
