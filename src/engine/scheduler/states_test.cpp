// Prefixes of models with recurrent states: whose states are kept where, and who begins after them. The scripted runner
// fails if a slot's states are of another text or position.
#include <gtest/gtest.h>

#include "engine/scheduler/test_script.h"

namespace doppler::engine {
namespace {

using testing::ask;
using testing::Script;
using testing::StreamPtr;
using testing::text;

constexpr uint32_t kShared = 32;

struct StatesScript : Script {
  explicit StatesScript(uint32_t checkpoints = 8, uint32_t least_kept = 4)
      : Script({.ctx_len = 128, .blocks = 256, .rows = 46, .checkpoints = checkpoints},
               {.least_kept = least_kept, .kept_stride = 40}) {
    runner.states = true;
  }
};

// The same beginning, and 9 tokens of its own.
std::vector<uint32_t> question(uint32_t number) {
  std::vector<uint32_t> tokens = text(kShared);
  for (const uint32_t token : text(9, 40 + number)) tokens.push_back(token);
  return tokens;
}

TEST(States, AConversationGoesOnBehindItsLastPrompt) {
  StatesScript s;
  const Request request = ask(text(40), 10);
  const StreamPtr first = s.submit(request);
  s.run();
  std::vector<uint32_t> tokens = first->sequence();
  for (const uint32_t token : text(20, 9)) tokens.push_back(token);
  const Request next = ask(tokens, 10);
  const StreamPtr second = s.submit(next);
  s.run();
  s.expect_alone(first, request);
  s.expect_alone(second, next);
  EXPECT_EQ(second->timings().cached_tokens,
            36u);  // the prompt's full blocks; its last token is always evaluated
}

TEST(States, ThreeAtOnceEvaluateTheirCommonBeginningOnce) {
  StatesScript s;
  std::vector<StreamPtr> streams;
  for (uint32_t i = 0; i < 3; ++i) streams.push_back(s.submit(ask(question(i), 10, /*client=*/i)));
  s.run();
  for (uint32_t i = 0; i < 3; ++i) {
    s.expect_alone(streams[i], ask(question(i), 10));
    EXPECT_EQ(streams[i]->timings().cached_tokens, i == 0 ? 0u : kShared);
  }
  EXPECT_EQ(s.piece_rows(), kShared + 3 * 9);
}

// The first request knows of nobody to share with, the second finds no states where both part, and leaves some.
TEST(States, OneAfterTheOtherShareFromTheThirdOn) {
  StatesScript s;
  for (uint32_t i = 0; i < 3; ++i) {
    const Request request = ask(question(i), 10);
    const StreamPtr stream = s.submit(request);
    s.run();
    s.expect_alone(stream, request);
    EXPECT_EQ(stream->timings().cached_tokens, i == 2 ? kShared : 0u);
  }
}

TEST(States, ForksOfAPromptUnderWayBeginBehindItsLastFullBlock) {
  StatesScript s;
  const Request request = ask(text(40), 10);
  const StreamPtr first = s.submit(request);
  auto forked = s.scheduler->fork(*first, request);
  ASSERT_TRUE(forked);
  s.run();
  s.expect_alone(first, request);
  s.expect_alone(*forked, request);
  EXPECT_EQ((*forked)->timings().cached_tokens, 36u);
  EXPECT_EQ(s.runner.copies, 0u);
}

TEST(States, TheCheckpointUsedLongestAgoMakesRoom) {
  StatesScript s(2);
  const auto cached = [&](uint32_t first) {
    const Request request = ask(text(40, first), 5);
    const StreamPtr stream = s.submit(request);
    s.run();
    s.expect_alone(stream, request);
    return stream->timings().cached_tokens;
  };
  EXPECT_EQ(cached(1), 0u);
  EXPECT_EQ(cached(2), 0u);
  EXPECT_EQ(cached(1), 36u);
  EXPECT_EQ(cached(3), 0u);  // in place of 2
  EXPECT_EQ(cached(1), 36u);
  EXPECT_EQ(cached(2), 0u);
}

TEST(States, WithoutCheckpointsAllIsEvaluated) {
  StatesScript s(0);
  const Request request = ask(text(40), 5);
  for (int i = 0; i < 2; ++i) {
    const StreamPtr stream = s.submit(request);
    s.run();
    s.expect_alone(stream, request);
    EXPECT_EQ(stream->timings().cached_tokens, 0u);
  }
  EXPECT_EQ(s.piece_rows(), 80u);
}

// Pieces without a cut: the rows of a step end where a block does.
TEST(States, WherePiecesEndTheyAreKeptOnTrial) {
  StatesScript s(3, 100);
  const Request request = ask(text(100), 5);
  const StreamPtr first = s.submit(request);
  s.run();
  EXPECT_EQ(s.piece_rows(), 100u);
  std::vector<uint32_t> tokens = text(100);
  tokens[50] = 0;
  const Request other = ask(tokens, 5);
  const StreamPtr second = s.submit(other);
  s.run();
  s.expect_alone(second, other);
  EXPECT_EQ(second->timings().cached_tokens, 44u);
}

// A step more costs more than a few tokens do.
TEST(States, ShortPromptsAreNotCut) {
  StatesScript s(8, 64);
  s.submit(ask(text(40), 1));
  s.run();
  EXPECT_EQ(s.runner.calls.size(), 1u);
}

}  // namespace
}  // namespace doppler::engine
