// Blocks under the scheduler: common prefixes, copies, forks, preemption, the host's cache. A story each, over a
// scripted runner.
#include <gtest/gtest.h>

#include "engine/scheduler/test_script.h"

namespace doppler::engine {
namespace {

using testing::ask;
using testing::Script;
using testing::StreamPtr;
using testing::TestSequenceRunner;
using testing::text;

TEST(Sharing, ACommonPrefixIsEvaluatedOnce) {
  Script s({.ctx_len = 128, .blocks = 128, .rows = 20});
  std::vector<StreamPtr> streams;
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 4; ++i) {
    std::vector<uint32_t> prompt = text(40);
    prompt.push_back(i);
    requests.push_back(ask(prompt, 10, /*client=*/i));
    streams.push_back(s.submit(requests.back()));
  }
  s.run();
  EXPECT_EQ(s.piece_rows(), 41u + 3u);
  for (size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(streams[i]->timings().cached_tokens, i == 0 ? 0u : 40u);
    s.expect_alone(streams[i], requests[i]);
  }
}

// Layers with a window: blocks of a prefix are there as long as the pool has no other use for them.
TEST(Sharing, APrefixIsSharedWithItsWindow) {
  Script s({.ctx_len = 128, .blocks = 128, .rows = 20, .window = 10});
  const Request request = ask(text(41), 10), other = ask(text(41), 20);
  const StreamPtr first = s.submit(request), second = s.submit(other);
  s.run();
  s.expect_alone(first, request);
  s.expect_alone(second, other);
  EXPECT_EQ(second->timings().cached_tokens, 40u);
}

TEST(Sharing, APrefixWhoseWindowIsGoneIsEvaluatedAgain) {
  Script s({.ctx_len = 128, .blocks = 256, .rows = 20, .window = 10});
  const Request request = ask(text(41), 10);
  const StreamPtr first = s.submit(request);
  s.run();
  for (uint32_t i = 0; i < 4; ++i)
    s.submit(ask(text(100, 30 + i), 10));  // through all blocks of the window's pool
  s.run();
  const StreamPtr again = s.submit(request);
  s.run();
  s.expect_alone(again, request);
  EXPECT_EQ(again->timings().cached_tokens, 0u);
}

TEST(Sharing, WindowsThatAreBehindAreGivenBack) {
  Script s({.ctx_len = 128, .blocks = 128, .rows = 20, .window = 10});
  const Request request = ask(text(100), 20);
  const StreamPtr stream = s.submit(request);
  const BlockPool& pool = s.scheduler->windows().pool();
  const uint32_t most = blocks_of(9, s.shape.block_len) + 1;
  while (s.turn()) EXPECT_LE(pool.block_count() - pool.free_count(), most);
  s.expect_alone(stream, request);
}

// The second request waits for the prefix that the first evaluates; a third request after it does not wait for that.
TEST(Sharing, WhoWaitsForAPrefixHoldsUpNobody) {
  Script s({.ctx_len = 400, .blocks = 400});
  const StreamPtr first = s.submit(ask(text(300), 5, 1)), same = s.submit(ask(text(300), 5, 2)),
                  other = s.submit(ask(text(10, 3), 5, 3));
  s.run_to(*other, 1);
  EXPECT_LE(s.runner.calls.size(), 2u);
  EXPECT_EQ(first->timings().generated_tokens, 0u);
  s.run();
  EXPECT_EQ(same->timings().cached_tokens, 299u);
}

TEST(Sharing, AWholePromptInTheCacheEvaluatesItsLastTokenInACopy) {
  Script s;
  const Request request = ask(text(16), 10);
  for (int i = 0; i < 3; ++i) {
    const StreamPtr stream = s.submit(request);
    s.run();
    s.expect_alone(stream, request);
    EXPECT_EQ(stream->timings().cached_tokens, i == 0 ? 0u : 15u);
  }
  EXPECT_EQ(s.runner.copies, 2u);
  EXPECT_EQ(s.piece_rows(), 16u + 1u + 1u);
}

TEST(Sharing, AWholePromptInAPoolWithoutAnotherBlockNeedsNoCopy) {
  Script s({.blocks = 4});
  const Request request = ask(text(16), 1);
  for (int i = 0; i < 3; ++i) {
    const StreamPtr stream = s.submit(request);
    s.run();
    s.expect_alone(stream, request);
    EXPECT_EQ(stream->timings().cached_tokens, i == 0 ? 0u : 15u);
  }
  EXPECT_EQ(s.runner.copies, 0u);
}

TEST(Sharing, AnAnswerIsAPrefixOfTheNextTurn) {
  Script s({.ctx_len = 128});
  const StreamPtr first = s.submit(ask(text(10), 20));
  s.run();
  std::vector<uint32_t> next = first->sequence();
  next.push_back(5);
  const Request request = ask(next, 8);
  const StreamPtr second = s.submit(request);
  s.run();
  EXPECT_EQ(second->timings().cached_tokens, 28u);  // 29 positions were written: 7 full blocks
  s.expect_alone(second, request);
}

TEST(Sharing, OtherExtrasShareNothing) {
  Script s;
  Request request = ask(text(16), 4);
  s.submit(request);
  s.run();
  request.extras = {1};
  const StreamPtr stream = s.submit(request);
  s.run();
  EXPECT_EQ(stream->timings().cached_tokens, 0u);
}

TEST(Sharing, PrefixesThatLeftThePoolComeBackFromTheHost) {
  Script s({.blocks = 8}, {.host_cache_bytes = 1 << 20});
  const Request request = ask(text(16, 1), 4), other = ask(text(25, 50), 4);
  s.submit(request);
  s.run();
  s.submit(other);
  s.run();
  EXPECT_GT(s.runner.reads, 0u);
  const StreamPtr again = s.submit(request);
  s.run();
  EXPECT_GT(s.runner.writes, 0u);
  EXPECT_EQ(again->timings().cached_tokens, 15u);
  s.expect_alone(again, request);
}

// Three answers that together need more blocks than there are. The youngest goes back to the queue; its text does not
// show it, with random numbers too.
TEST(Sharing, APreemptedStreamGoesOnAsIfNothingHadHappened) {
  Script s({.ctx_len = 100, .blocks = 26});
  std::vector<StreamPtr> streams;
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 3; ++i) {
    requests.push_back(ask(text(8, i), 60));
    requests.back().settings.seed = i;
    streams.push_back(s.submit(requests.back()));
  }
  s.run();
  EXPECT_EQ(streams[0]->timings().preemptions, 0u) << "the oldest keeps its blocks";
  EXPECT_GT(streams[2]->timings().preemptions, 0u);
  for (size_t i = 0; i < 3; ++i) s.expect_alone(streams[i], requests[i]);
}

TEST(Sharing, AHigherPriorityKeepsItsBlocks) {
  Script s({.ctx_len = 100, .blocks = 26});
  Request high = ask(text(8, 5), 60);
  const StreamPtr low = s.submit(ask(text(8), 60));
  high.priority = 1;
  const StreamPtr kept = s.submit(high);
  s.run();
  EXPECT_GT(low->timings().preemptions, 0u);
  EXPECT_EQ(kept->timings().preemptions, 0u);
}

TEST(Sharing, AForkSharesFullBlocksAndCopiesTheLast) {
  Script s({.ctx_len = 128, .blocks = 100});
  Request request = ask(text(18), 20);
  const StreamPtr parent = s.submit(request);
  s.run_to(*parent, 1);
  const uint32_t before = s.piece_rows();
  std::vector<StreamPtr> forks;
  std::vector<Request> alone;
  for (uint32_t i = 0; i < 3; ++i) {
    Request other = ask(parent->sequence(), 20);
    other.settings.seed = i;
    forks.push_back(*s.scheduler->fork(*parent, other));
    alone.push_back(other);
  }
  s.run();
  EXPECT_EQ(s.piece_rows() - before, 3u) << "a token each";
  EXPECT_EQ(s.runner.copies, 3u);
  for (size_t i = 0; i < forks.size(); ++i) {
    EXPECT_EQ(forks[i]->timings().cached_tokens, 18u);
    s.expect_alone(forks[i], alone[i]);
  }
  s.expect_alone(parent, request);
  const Request late = ask(parent->sequence(), 20);
  const StreamPtr of_ended = *s.scheduler->fork(*parent, late);
  s.run();
  EXPECT_EQ(of_ended->timings().cached_tokens, 36u);  // 37 positions were written: 9 full blocks
  s.expect_alone(of_ended, late);
}

// A fork that is preempted has a text of its own by then: its parent's last block is of another. A third request ends
// early, in some of the cases just when the fork was preempted, so that it begins again while its parent still runs.
TEST(Sharing, APreemptedForkDoesNotTakeItsParentsTextForItsOwn) {
  for (uint32_t answer = 5; answer < 45; ++answer) {
    for (uint32_t blocks = 15; blocks < 40; ++blocks) {
      Script s({.blocks = blocks, .steps = 3});
      s.submit(ask(text(8, 40), answer));
      const StreamPtr parent = s.submit(ask(text(6), 50));
      s.run_to(*parent, 1);
      Request request = ask(parent->sequence(), 45);
      request.settings.seed = 1;
      const StreamPtr fork = *s.scheduler->fork(*parent, request);
      s.run();
      s.expect_alone(fork, request);
    }
  }
}

// 16 steps would need 8 blocks more, and 4 are free; after 8 steps the first has met its stop.
TEST(Sharing, FewerStepsComeBeforePreempting) {
  Script s({.blocks = 8}, {.tickets_ahead = 1});
  Request stops = ask(text(8, 1), 24);
  stops.settings.stop_tokens = {TestSequenceRunner::alone(s.shape, stops.tokens, stops.settings)[5]};
  const StreamPtr first = s.submit(stops), second = s.submit(ask(text(8, 2), 24));
  s.run();
  EXPECT_EQ(first->reason(), StopReason::kEndOfText);
  EXPECT_EQ(second->timings().preemptions, 0u);
}

// The second prompt would fit, but not the next block of the first answer then.
TEST(Sharing, WhoBeginsLeavesRoomForThoseThatRun) {
  Script s({.blocks = 8});
  const StreamPtr first = s.submit(ask(text(8, 1), 12)), second = s.submit(ask(text(24, 2), 4));
  s.run();
  EXPECT_EQ(first->timings().preemptions + second->timings().preemptions, 0u);
  EXPECT_TRUE(second->ended());
}

}  // namespace
}  // namespace doppler::engine
