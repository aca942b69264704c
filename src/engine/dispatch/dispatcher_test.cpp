// Requests over two scripted runners, each with the thread of its card: no GPU. Every answer equals that of its request
// by itself, whatever card it ran on.
#include <gtest/gtest.h>

#include <latch>

#include "engine/dispatch/dispatcher_native.h"
#include "engine/scheduler/test_script.h"
#include "gpu/recording_device.h"

namespace doppler::engine {
namespace {

using testing::ask;
using testing::RunnerShape;
using testing::TestSequenceRunner;
using testing::text;
using LinePtr = std::shared_ptr<StreamLine>;

struct TwoCards {
  explicit TwoCards(RunnerShape given = {})
      : shape(given), runners{TestSequenceRunner(given), TestSequenceRunner(given)} {
    for (size_t i = 0; i < 2; ++i) {
      runners[i].may_write = [this](uint32_t) {
        gate.wait();
        return true;
      };
      drivers.push_back(
          std::move(*SchedulerDriver::create(device[i], runners[i], {.vocab_size = shape.vocab})));
    }
  }
  ~TwoCards() {
    if (dispatcher) dispatcher->close();
    drivers.clear();
  }
  // The cards' threads stand still from their first step on, until open().
  void start(bool is_open = true) {
    dispatcher = std::make_unique<Dispatcher>(std::vector{drivers[0].get(), drivers[1].get()});
    if (is_open) open();
  }
  void open() { gate.count_down(); }
  LinePtr submit(Request request, LinePtr parent = nullptr) {
    auto line = dispatcher->submit(std::move(request), std::move(parent));
    EXPECT_TRUE(line) << line.error().message();
    return *line;
  }
  LinePtr submit_later(Request request) {
    return dispatcher->submit_later(std::move(request), nullptr, nullptr);
  }
  Arrived read(const LinePtr& line) {
    Arrived all = line->wait();
    while (!all.ended) {
      Arrived more = line->wait();
      all.tokens.insert(all.tokens.end(), more.tokens.begin(), more.tokens.end());
      more.tokens = std::move(all.tokens);
      all = std::move(more);
    }
    return all;
  }
  std::vector<uint32_t> alone(const Request& request) const {
    return TestSequenceRunner::alone(shape, request.tokens, request.settings);
  }

  RunnerShape shape;
  gpu::RecordingDevice device[2] = {gpu::RecordingDevice(gpu::Caps{}), gpu::RecordingDevice(gpu::Caps{})};
  TestSequenceRunner runners[2];
  std::latch gate{1};
  std::vector<std::unique_ptr<SchedulerDriver>> drivers;
  std::unique_ptr<Dispatcher> dispatcher;
};

TEST(Dispatcher, AnswersAsOneCardDoesAndUsesBoth) {
  TwoCards cards;
  cards.start(/*is_open=*/false);
  std::vector<Request> requests;
  std::vector<LinePtr> lines;
  for (uint32_t i = 0; i < 40; ++i) {
    requests.push_back(ask(text(3 + i % 20, i), 2 + i % 17, i % 3));
    lines.push_back(cards.submit_later(requests.back()));
  }
  cards.open();
  for (size_t i = 0; i < lines.size(); ++i) {
    const Arrived arrived = cards.read(lines[i]);
    EXPECT_FALSE(arrived.error);
    EXPECT_EQ(arrived.tokens, cards.alone(requests[i])) << i;
  }
  const SchedulerLoad load = cards.dispatcher->load();
  EXPECT_EQ(load.running + load.waiting, 0u);
  EXPECT_EQ(load.blocks, 2 * cards.shape.blocks);
  ASSERT_EQ(load.devices.size(), 2u);
  // A thread that the system starts late finds nothing left of the first requests.
  const auto are_used = [&] {
    return std::ranges::all_of(cards.runners, [&](const TestSequenceRunner& runner) {
      return runner.begins >= cards.shape.sequences;
    });
  };
  for (int round = 0; round < 200 && !are_used(); ++round) {
    lines.clear();
    for (const Request& request : requests) lines.push_back(cards.submit_later(request));
    for (size_t i = 0; i < lines.size(); ++i)
      EXPECT_EQ(cards.read(lines[i]).tokens, cards.alone(requests[i]));
  }
  EXPECT_TRUE(are_used());
}

TEST(Dispatcher, AHigherPriorityBeginsBeforeWhatWaitsForEitherCard) {
  TwoCards cards({.sequences = 1});
  cards.start(/*is_open=*/false);
  std::vector<LinePtr> lows;
  for (uint32_t i = 0; i < 8; ++i) lows.push_back(cards.submit_later(ask(text(4, i), 20)));
  Request high = ask(text(4, 90), 20);
  high.priority = 3;
  const LinePtr first = cards.submit_later(high);
  cards.open();
  const Arrived answer = cards.read(first);
  EXPECT_EQ(answer.tokens, cards.alone(high));
  uint32_t waiting = 0;
  for (const LinePtr& low : lows)
    waiting += cards.read(low).timings.queued_seconds > answer.timings.queued_seconds;
  EXPECT_GE(waiting, 5u);
}

TEST(Dispatcher, WhatIsCancelledInTheQueueEndsAtOnce) {
  TwoCards cards({.sequences = 1});
  cards.start(/*is_open=*/false);
  std::vector<LinePtr> lines;
  for (uint32_t i = 0; i < 6; ++i) lines.push_back(cards.submit_later(ask(text(4, i), 20)));
  cards.dispatcher->cancel_later(lines[5]);
  EXPECT_EQ(cards.read(lines[5]).reason, StopReason::kCancelled);
  cards.dispatcher->cancel_later(lines[0]);
  cards.open();
  EXPECT_EQ(cards.read(lines[0]).reason, StopReason::kCancelled);
  for (size_t i = 1; i < 5; ++i) EXPECT_EQ(cards.read(lines[i]).reason, StopReason::kTokenLimit);
}

TEST(Dispatcher, ADeadlineEndsWhatWaitsForAllCards) {
  TwoCards cards({.sequences = 1});
  cards.start(/*is_open=*/false);
  std::vector<LinePtr> lines;
  for (uint32_t i = 0; i < 2; ++i) lines.push_back(cards.submit_later(ask(text(4, i), 20)));
  Request late = ask(text(4, 50), 20);
  late.deadline = Clock::now();
  const LinePtr line = cards.submit_later(late);
  cards.open();
  const Arrived ended = cards.read(line);
  ASSERT_TRUE(ended.error);
  EXPECT_NE(ended.error->message().find("its deadline allowed"), std::string::npos) << ended.error->message();
  for (const LinePtr& other : lines) EXPECT_FALSE(cards.read(other).error);
}

TEST(Dispatcher, ARequestGoesWhereItsBeginningIs) {
  TwoCards cards({.ctx_len = 1024, .block_len = 16, .blocks = 256, .rows = 128});
  cards.start();
  const std::vector<uint32_t> shared = text(768);
  cards.read(cards.submit(ask(shared, 2)));
  const LinePtr busy = cards.submit(ask(text(8, 3), 2));  // to the other card or this one, for a moment
  cards.read(busy);
  for (uint32_t i = 0; i < 4; ++i) {
    std::vector<uint32_t> prompt = shared;
    prompt.push_back(i);
    const Arrived answer = cards.read(cards.submit(ask(prompt, 2)));
    EXPECT_EQ(answer.timings.cached_tokens, 768u);
  }
}

TEST(Dispatcher, AForkHasItsParentsText) {
  TwoCards cards;
  cards.start();
  const Request parent = ask(text(12), 8);
  const LinePtr line = cards.submit(parent);
  std::vector<LinePtr> forks;
  for (uint32_t i = 0; i < 6; ++i) forks.push_back(cards.submit(parent, line));
  EXPECT_EQ(cards.read(line).tokens, cards.alone(parent));
  for (const LinePtr& fork : forks) EXPECT_EQ(cards.read(fork).tokens, cards.alone(parent));
}

TEST(Dispatcher, ALostCardsStreamsMayGoOnElsewhere) {
  TwoCards cards;
  cards.runners[0].fail_after = 6;
  cards.start();
  std::vector<Request> requests;
  std::vector<LinePtr> lines;
  for (uint32_t i = 0; i < 8; ++i) {
    requests.push_back(ask(text(5, i), 40));
    lines.push_back(cards.submit(requests.back()));
  }
  uint32_t moved = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    Arrived answer = cards.read(lines[i]);
    if (answer.error) {
      EXPECT_TRUE(cards.dispatcher->moves(*lines[i]));
      ++moved;
      Request rest = requests[i];
      rest.tokens.insert(rest.tokens.end(), answer.tokens.begin(), answer.tokens.end());
      rest.settings.generated = static_cast<uint32_t>(answer.tokens.size());
      rest.settings.max_tokens -= rest.settings.generated;
      const LinePtr again = cards.submit(rest);
      const Arrived more = cards.read(again);
      EXPECT_FALSE(more.error);
      answer.tokens.insert(answer.tokens.end(), more.tokens.begin(), more.tokens.end());
    }
    EXPECT_EQ(answer.tokens, cards.alone(requests[i])) << i;
  }
  EXPECT_GE(moved, 1u);
  const SchedulerLoad load = cards.dispatcher->load();
  EXPECT_TRUE(load.devices[0].is_lost);
  EXPECT_FALSE(load.devices[1].is_lost);
  EXPECT_EQ(cards.read(cards.submit(requests[0])).tokens, cards.alone(requests[0]));
}

TEST(Dispatcher, WithoutAnyCardRequestsSayWhy) {
  TwoCards cards;
  for (TestSequenceRunner& runner : cards.runners) runner.fail_after = 3;
  cards.start();
  std::vector<LinePtr> lines;
  for (uint32_t i = 0; i < 4; ++i) lines.push_back(cards.submit_later(ask(text(5, i), 40)));
  for (const LinePtr& line : lines) {
    const Arrived answer = cards.read(line);
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->message(), "The device is lost.");
  }
  EXPECT_FALSE(cards.dispatcher->moves(*lines[0]));
  EXPECT_FALSE(cards.dispatcher->submit(ask(text(5), 4)));
}

TEST(Dispatcher, ImpossibleRequestsFailAtOnce) {
  TwoCards cards;
  cards.start();
  EXPECT_FALSE(cards.dispatcher->submit(ask({}, 4)));
  Request wrong = ask(text(4), 4);
  wrong.priority = kMaxPriority + 1;
  EXPECT_FALSE(cards.dispatcher->submit(wrong));
  EXPECT_TRUE(cards.read(cards.submit_later(wrong)).error);
}

}  // namespace
}  // namespace doppler::engine
