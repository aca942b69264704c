// A scheduler over the scripted runner with a clock of its own, for the stories of its tests. Each turn also checks
// that slots and blocks add up, each write that its block is held once.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "engine/scheduler/test_sequence_runner.h"

namespace doppler::engine::testing {

using StreamPtr = std::shared_ptr<Stream>;

// Some text; another `first` is another text.
inline std::vector<uint32_t> text(uint32_t count, uint32_t first = 1) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < count; ++i) out.push_back((first + i * 7) % RunnerShape().vocab);
  return out;
}

inline Request ask(std::vector<uint32_t> tokens, uint32_t max_tokens, uint64_t client = 0) {
  Request request;
  request.tokens = std::move(tokens);
  request.settings.max_tokens = max_tokens;
  request.client = client;
  return request;
}

struct Script {
  explicit Script(RunnerShape shape_given = {}, SchedulerConfig config = {})
      : shape(shape_given), runner(shape) {
    config.vocab_size = shape.vocab;
    config.secret = {.low = 3, .high = 4};
    config.now = [this] { return now; };
    scheduler = std::move(*Scheduler::create(runner, config));
    runner.may_write = [this](uint32_t block) {
      const BlockPool& pool = scheduler->blocks().pool();
      return pool.references(block) == 1 && !pool.published(block);
    };
    runner.may_write_window = [this](uint32_t block) {
      const BlockPool& pool = scheduler->windows().pool();
      return pool.references(block) == 1 && !pool.published(block);
    };
  }
  StreamPtr submit(Request request) {
    auto stream = scheduler->submit(std::move(request));
    EXPECT_TRUE(stream) << stream.error().message();
    return *stream;
  }
  bool turn() {
    Task<Result<bool>> task = scheduler->turn();
    task.start();
    EXPECT_TRUE(task.done());
    const Result<bool> more = task.take();
    EXPECT_TRUE(more) << more.error().message();
    const Result<void> sound = scheduler->check();
    EXPECT_TRUE(sound) << sound.error().message();
    return *more;
  }
  void run() {
    while (turn()) {
    }
    EXPECT_EQ(scheduler->blocks().pool().free_count(), shape.blocks);
    EXPECT_EQ(scheduler->windows().pool().free_count(), runner.window_block_count());
  }
  // Turns until the stream has tokens.
  void run_to(const Stream& stream, size_t tokens) {
    while (stream.timings().generated_tokens < tokens) ASSERT_TRUE(turn());
  }
  void expect_alone(const StreamPtr& stream, const Request& request) {
    EXPECT_EQ(stream->take(), TestSequenceRunner::alone(shape, request.tokens, request.settings));
  }
  uint32_t piece_rows() const {
    uint32_t rows = 0;
    for (const auto& call : runner.calls) rows += call.piece_rows;
    return rows;
  }

  RunnerShape shape;
  TestSequenceRunner runner;
  Clock::time_point now{};
  std::unique_ptr<Scheduler> scheduler;
};

}  // namespace doppler::engine::testing
