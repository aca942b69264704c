// Tests the content of each step, who begins, and how a stream ends: a story each, over a scripted runner. Blocks and
// prefixes are in sharing_test.cpp, random schedules in schedules_test.cpp.
#include "engine/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/scheduler/test_script.h"

namespace doppler::engine {
namespace {

using testing::ask;
using testing::Script;
using testing::StreamPtr;
using testing::TestSequenceRunner;
using testing::text;

TEST(Scheduler, OneRequestIsEvaluatedInFullStepsAndDecodedInBatches) {
  Script s({.ctx_len = 128}, {.prefill_share = 8});
  const Request request = ask(text(50), 40);
  const StreamPtr stream = s.submit(request);
  s.run();
  s.expect_alone(stream, request);
  EXPECT_EQ(stream->reason(), StopReason::kTokenLimit);
  ASSERT_EQ(s.runner.calls.size(), 5u);
  EXPECT_EQ(s.runner.calls[0].piece_rows, 32u);  // all rows of a step
  EXPECT_EQ(s.runner.calls[1].piece_rows, 18u);
  EXPECT_EQ(s.runner.calls[2].steps, 16u);
  EXPECT_EQ(s.runner.calls[3].steps, 16u);
  EXPECT_EQ(s.runner.calls[4].steps, 7u);  // 39 in all: the first token needs none, and the limit is kept
  EXPECT_FALSE(s.turn()) << "idle";
}

TEST(Scheduler, StepsThatTakeLongHaveATicketEach) {
  Script s({.ctx_len = 200});
  const StreamPtr stream = s.submit(ask(text(3), 120));
  const auto last_steps = [&] { return s.runner.calls.back().steps; };
  s.run_to(*stream, 1);
  EXPECT_EQ(last_steps(), 16u);
  for (int i = 0; i < 4; ++i) {
    s.now += std::chrono::milliseconds(16 * 30);
    s.turn();
  }
  EXPECT_EQ(last_steps(), 1u);
  for (int i = 0; i < 4; ++i) {
    s.now += std::chrono::milliseconds(10);
    s.turn();
  }
  EXPECT_GT(last_steps(), 1u);
}

TEST(Scheduler, ARequestMaySayHowManyStepsATicketHas) {
  Script s({.ctx_len = 200});
  Request request = ask(text(3), 30);
  request.batch = 2;
  s.submit(request);
  s.run();
  for (const auto& call : s.runner.calls) EXPECT_LE(call.steps, 2u);
}

TEST(Scheduler, TwoTicketsAreAheadAndNoMore) {
  Script s({.ctx_len = 200, .steps = 4});
  s.submit(ask(text(3), 100));
  s.run();
  EXPECT_EQ(s.runner.most_outstanding, 2u);
  Script one({.ctx_len = 200, .steps = 4, .tickets = 1});
  one.submit(ask(text(3), 100));
  one.run();
  EXPECT_EQ(one.runner.most_outstanding, 1u);
}

TEST(Scheduler, AnAnswerWhoseDeviceWasLostGoesOnAsItWouldHave) {
  const auto alone = TestSequenceRunner::alone({}, text(5), {.max_tokens = 20});
  Request rest = ask(text(5), 13);
  rest.tokens.insert(rest.tokens.end(), alone.begin(), alone.begin() + 7);
  rest.settings.generated = 7;
  Script s;
  const StreamPtr stream = s.submit(rest);
  s.run();
  EXPECT_EQ(stream->take(), std::vector<uint32_t>(alone.begin() + 7, alone.end()));
  EXPECT_EQ(stream->reason(), StopReason::kTokenLimit);
}

TEST(Scheduler, StreamsEndForTheirReason) {
  const auto alone = TestSequenceRunner::alone({}, text(5), {.max_tokens = 20});
  Request stops = ask(text(5), 20), ignores = stops, full = ask(text(60), 0), fits = ask(text(60), 5);
  stops.settings.stop_tokens = ignores.settings.stop_tokens = {alone[6]};
  ignores.settings.ignore_stop = true;
  const size_t first = static_cast<size_t>(std::ranges::find(alone, alone[6]) - alone.begin()) + 1;
  const struct {
    Request request;
    StopReason reason;
    size_t tokens;
  } cases[] = {
      {stops, StopReason::kEndOfText, first},
      {ignores, StopReason::kTokenLimit, 20},
      {full, StopReason::kContextFull, 5},  // 4 positions are left, and the last token needs none
      {fits, StopReason::kTokenLimit, 5},
  };
  for (const auto& c : cases) {
    Script s;
    const StreamPtr stream = s.submit(c.request);
    s.run();
    EXPECT_EQ(stream->reason(), c.reason);
    EXPECT_EQ(stream->take().size(), c.tokens);
  }
}

// While others decode, a long prompt gets prefill_share rows a step, and every decoding slot is in every step.
TEST(Scheduler, ALongPromptDoesNotHoldUpThoseThatDecode) {
  Script s({.ctx_len = 200, .blocks = 200}, {.prefill_share = 8});
  const StreamPtr a = s.submit(ask(text(4, 1), 150)), b = s.submit(ask(text(4, 2), 150));
  s.run_to(*a, 10);
  const size_t before = s.runner.calls.size();
  const StreamPtr late = s.submit(ask(text(100, 3), 5));
  s.run_to(*late, 1);
  size_t mixed = 0;
  for (size_t i = before; i < s.runner.calls.size(); ++i) {
    const auto& call = s.runner.calls[i];
    EXPECT_GE(call.decoding.size(), 2u) << "call " << i;
    EXPECT_LE(call.piece_rows, 8u) << "call " << i;
    if (call.piece_rows > 0) ++mixed;
  }
  EXPECT_EQ(mixed, 13u);  // 100 rows by 8
  s.run();
  EXPECT_EQ(b->take().size(), 150u);
}

TEST(Scheduler, BatchesAreShortWhileOthersWait) {
  Script s({.sequences = 1, .ctx_len = 200});
  s.submit(ask(text(4, 1), 60));
  const StreamPtr waits = s.submit(ask(text(4, 2), 60));
  s.run();
  uint32_t prompts = 0, longest[] = {0, 0};  // while the second waits, and then
  for (const auto& call : s.runner.calls) {
    if (call.piece_rows > 0) ++prompts;
    longest[prompts - 1] = std::max(longest[prompts - 1], call.steps);
  }
  EXPECT_EQ(longest[0], kShortSteps);
  EXPECT_EQ(longest[1], 16u);
  EXPECT_EQ(waits->take().size(), 60u);
}

TEST(Scheduler, AnotherClientsShortPromptPassesALongOne) {
  Script s({.ctx_len = 400, .blocks = 400});
  const StreamPtr slow = s.submit(ask(text(300, 1), 5, 1)), own = s.submit(ask(text(10, 2), 5, 1)),
                  other = s.submit(ask(text(10, 3), 5, 2));
  s.run_to(*other, 1);
  EXPECT_EQ(s.runner.calls[0].piece_slots.size(), 2u);
  EXPECT_EQ(s.runner.calls[0].piece_rows, 32u) << "what the short one leaves goes to the long one";
  EXPECT_FALSE(slow->ended());
  EXPECT_EQ(own->timings().generated_tokens, 0u) << "of one client, the older comes first";
  s.run();
}

TEST(Scheduler, CancelledStreamsEndAtOnceWhereverTheyAre) {
  Script s({.sequences = 2, .ctx_len = 200, .blocks = 100}, {.prefill_share = 4});
  const Request kept = ask(text(5), 100);
  const StreamPtr stays = s.submit(kept);
  s.run_to(*stays, 2);
  const StreamPtr prefill = s.submit(ask(text(100, 2), 50)), waiting = s.submit(ask(text(5, 3), 50));
  s.turn();
  s.turn();
  ASSERT_EQ(prefill->timings().generated_tokens, 0u);
  ASSERT_EQ(s.scheduler->waiting_count(), 1u);
  for (const StreamPtr& stream : {waiting, prefill}) {
    s.scheduler->cancel(*stream);
    EXPECT_EQ(stream->reason(), StopReason::kCancelled);
  }
  const StreamPtr decode = s.submit(ask(text(5, 4), 50));
  s.run_to(*decode, 3);
  decode->take();
  s.scheduler->cancel(*decode);
  EXPECT_EQ(decode->reason(), StopReason::kCancelled);
  s.scheduler->cancel(*decode);  // again changes nothing
  s.run();
  EXPECT_TRUE(decode->take().empty());
  s.expect_alone(stays, kept);
  s.scheduler->cancel(*stays);
  EXPECT_EQ(stays->reason(), StopReason::kTokenLimit);
}

TEST(StepPolicy, PromptsHaveMoreRowsWhereMoreOfThemWait) {
  const struct {
    BudgetNeeds needs;
    uint32_t rows;
  } cases[] = {
      {{.share = 8, .rows_left = 100, .decoding = 0, .prompts = 1}, 100},
      {{.share = 8, .rows_left = 100, .decoding = 4, .prompts = 1}, 8},
      {{.share = 8, .rows_left = 100, .decoding = 4, .prompts = 4}, 8},
      {{.share = 8, .rows_left = 100, .decoding = 4, .prompts = 7}, 14},
      {{.share = 8, .rows_left = 100, .decoding = 1, .prompts = 50}, 8 * kMostShares},
      {{.share = 8, .rows_left = 5, .decoding = 1, .prompts = 50}, 5},
  };
  for (const auto& c : cases) EXPECT_EQ(prompt_budget(c.needs), c.rows) << c.rows;
}

// Many prompts at once beside one stream: they take a quarter of the steps that a share each would take.
TEST(Scheduler, ManyPromptsBesideFewStreamsAreEvaluatedSooner) {
  Script s({.sequences = 8, .ctx_len = 200, .blocks = 400, .rows = 72}, {.prefill_share = 8});
  const StreamPtr first = s.submit(ask(text(4, 1), 150));
  s.run_to(*first, 3);
  const size_t before = s.runner.calls.size();
  std::vector<StreamPtr> others;
  for (uint32_t i = 0; i < 7; ++i) others.push_back(s.submit(ask(text(64, 2 + i), 2, /*client=*/i)));
  for (const StreamPtr& other : others) s.run_to(*other, 1);
  EXPECT_LE(s.runner.calls.size() - before, 7u * 64u / 8u / 2u);
  for (size_t i = before; i < s.runner.calls.size(); ++i)
    EXPECT_LE(s.runner.calls[i].piece_rows, 8u * kMostShares);
  s.run();
}

TEST(Scheduler, AStreamTellsHowFarItsPromptIs) {
  Script s({.sequences = 2, .ctx_len = 128, .blocks = 128, .rows = 20});
  const StreamPtr first = s.submit(ask(text(50), 3));
  std::vector<uint32_t> evaluated;
  while (s.turn()) {
    const uint32_t now = first->timings().evaluated_tokens;
    if (evaluated.empty() || evaluated.back() != now) evaluated.push_back(now);
  }
  EXPECT_EQ(evaluated, (std::vector<uint32_t>{20, 40, 50}));
  const StreamPtr again = s.submit(ask(text(50), 3));
  s.run();
  const StreamTimings& timings = again->timings();
  EXPECT_GT(timings.cached_tokens, 0u);
  EXPECT_EQ(timings.cached_tokens + timings.evaluated_tokens, 50u);
}

TEST(Scheduler, ADeadlineThatPassesInTheQueueIsAnError) {
  Script s({.sequences = 1});
  s.submit(ask(text(5), 50));
  Request request = ask(text(5, 2), 5);
  request.deadline = s.now + std::chrono::milliseconds(1500);
  const StreamPtr late = s.submit(request);
  s.turn();
  s.now += std::chrono::seconds(2);
  s.turn();
  ASSERT_TRUE(late->error());
  EXPECT_EQ(late->error()->message(),
            "The request waited 2.000 s for its turn; its deadline allowed 1.500 s.");
  const StreamPtr begun = s.submit(request);  // passed already, and the slot is taken
  s.run();
  EXPECT_TRUE(begun->error());
  request.deadline = s.now;
  const StreamPtr in_time = s.submit(request);
  s.turn();
  s.now += std::chrono::seconds(2);
  s.run();
  EXPECT_EQ(in_time->reason(), StopReason::kTokenLimit) << "the deadline is for beginning";
}

TEST(Scheduler, NobodyStarvesBehindHigherPriorities) {
  Script s({.sequences = 1}, {.aging = std::chrono::seconds(1)});
  Request high = ask(text(4), 4);
  high.priority = kMaxPriority;
  s.submit(high);
  const StreamPtr low = s.submit(ask(text(4, 9), 4));
  int turns = 0;
  while (!low->ended()) {
    ASSERT_LT(++turns, 1000);
    if (s.scheduler->waiting_count() < 3) s.submit(high);
    s.turn();
    s.now += std::chrono::milliseconds(100);
  }
  EXPECT_GT(turns, 60) << "higher ones did come first";
}

// Those of its own priority wait for a slot; so does everybody else once the lower one has waited long enough.
TEST(Scheduler, AHigherPriorityTakesTheSlotOfALowerOne) {
  Script s({.sequences = 2, .ctx_len = 256, .blocks = 256}, {.aging = std::chrono::seconds(1)});
  const Request low = ask(text(8), 200), lower = ask(text(8, 5), 200);
  const StreamPtr first = s.submit(low), second = s.submit(lower);
  s.run_to(*first, 5);
  Request high = ask(text(8, 9), 20), middle = ask(text(8, 11), 20);
  high.priority = 2;
  middle.priority = 1;
  const StreamPtr urgent = s.submit(high);
  s.run_to(*urgent, 5);
  EXPECT_FALSE(second->ended()) << "the younger of both made room";
  EXPECT_EQ(second->timings().preemptions, 1u);
  EXPECT_EQ(first->timings().preemptions, 0u);
  const StreamPtr same = s.submit(high);
  s.now += std::chrono::seconds(2);
  const StreamPtr late = s.submit(middle);
  s.run();
  for (const auto& [stream, request] :
       {std::pair(first, low), {second, lower}, {urgent, high}, {same, high}, {late, middle}})
    s.expect_alone(stream, request);
  EXPECT_EQ(second->timings().preemptions, 1u);
  EXPECT_EQ(first->timings().preemptions, 1u) << "by the second urgent one";
}

TEST(Scheduler, BadRequestsAreOneSentence) {
  Script s({.sequences = 1, .blocks = 5}, {.max_waiting = 2});
  Request priority = ask(text(1), 1), stops = priority, biases = priority;
  priority.priority = 8;
  stops.settings.stop_tokens.resize(33);
  biases.settings.logit_bias.resize(1025);
  const struct {
    Request request;
    const char* sentence;
  } cases[] = {
      {ask({}, 1), "The prompt is empty; at least one token is needed."},
      {ask({97}, 1), "Token 97 is outside the vocabulary; allowed is 0 to 96."},
      {ask(text(64), 1),
       "The prompt has 64 tokens, but the context holds 64 and needs room for an answer; raise --ctx."},
      {ask(text(16), 6),
       "The prompt of 16 tokens and an answer of at most 6 need 6 blocks, but the cache has 5; lower the "
       "token limit or "
       "give the cache more memory."},
      {priority, "The priority is 8; allowed is 0 to 7."},
      {stops, "33 stop tokens were given; at most 32 are allowed."},
      {biases, "1025 logit biases were given; at most 1024 are allowed."},
  };
  for (const auto& c : cases) {
    const auto stream = s.scheduler->submit(c.request);
    ASSERT_FALSE(stream) << c.sentence;
    EXPECT_EQ(stream.error().message(), c.sentence);
  }
  s.submit(ask(text(16), 5));
  s.submit(ask(text(16), 5));
  const auto third = s.scheduler->submit(ask(text(16), 5));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().message(), "2 requests wait already; at most 2 may.");
  s.run();
}

TEST(Scheduler, BadConfigurationsAreOneSentence) {
  TestSequenceRunner narrow({.sequences = 8, .rows = 8});
  const auto no_rows = Scheduler::create(narrow, {.vocab_size = 97});
  ASSERT_FALSE(no_rows);
  EXPECT_EQ(no_rows.error().message(),
            "A step has 8 rows; 8 sequences that decode and a row of a prompt need 9.");
  TestSequenceRunner runner({});
  const auto no_tickets = Scheduler::create(runner, {.vocab_size = 97, .tickets_ahead = 0});
  ASSERT_FALSE(no_tickets);
  EXPECT_EQ(no_tickets.error().message(), "The scheduler's tickets-ahead is 0; at least 1 is needed.");
}

TEST(Scheduler, AnErrorOfTheDeviceEndsAllStreams) {
  Script s({.sequences = 1});
  const StreamPtr running = s.submit(ask(text(5), 50)), waiting = s.submit(ask(text(5), 50));
  s.runner.fail_after = 3;
  for (int i = 0; i < 2; ++i) {
    Result<bool> more = true;
    while (more && *more) {
      Task<Result<bool>> task = s.scheduler->turn();
      task.start();
      more = task.take();
    }
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().message(), "The device is lost.");
  }
  for (const StreamPtr& stream : {running, waiting}) {
    ASSERT_TRUE(stream->error());
    EXPECT_EQ(stream->error()->message(), "The device is lost.");
  }
  EXPECT_FALSE(s.scheduler->submit(ask(text(5), 5)));
}

// A client with many requests and one with few, on one slot: while both wait they are served equally.
TEST(Scheduler, AFloodOfOneClientDoesNotDelayAnother) {
  Script s({.sequences = 1}, {.quantum = 16});
  std::vector<StreamPtr> flood, few;
  for (uint32_t i = 0; i < 40; ++i) flood.push_back(s.submit(ask(text(8, i), 8, 1)));
  for (uint32_t i = 0; i < 5; ++i) few.push_back(s.submit(ask(text(8, 60 + i), 8, 2)));
  while (!few.back()->ended()) ASSERT_TRUE(s.turn());
  const auto served = std::ranges::count_if(flood, [](const StreamPtr& stream) { return stream->ended(); });
  EXPECT_LE(served, 8);
  s.run();
}

TEST(StepPolicy, SplitsRowsAmongClientsThenByAge) {
  const struct {
    std::vector<PromptNeed> needs;
    uint32_t budget, pieces;
    std::vector<uint32_t> rows;
  } cases[] = {
      {{{1, 100}}, 32, 4, {32}},
      {{{1, 100}, {1, 10}}, 32, 4, {32, 0}},
      {{{1, 20}, {1, 100}}, 32, 4, {20, 12}},
      {{{1, 100}, {2, 100}}, 32, 4, {16, 16}},
      {{{1, 100}, {2, 5}}, 32, 4, {27, 5}},
      {{{1, 100}, {2, 5}, {3, 100}}, 32, 4, {17, 5, 10}},
      {{{1, 4}, {1, 4}, {1, 4}}, 32, 2, {4, 4, 0}},
      {{{1, 9}, {2, 9}, {3, 9}}, 32, 2, {9, 9, 0}},
      {{{1, 9}, {2, 9}, {3, 9}}, 2, 8, {1, 1, 0}},
  };
  for (const auto& c : cases) EXPECT_EQ(split_rows(c.needs, c.budget, c.pieces), c.rows);
}

}  // namespace
}  // namespace doppler::engine
