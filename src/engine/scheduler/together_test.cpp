// Tokens that see each other, such as those of a picture, are evaluated in one step.
#include <gtest/gtest.h>

#include "engine/scheduler/test_script.h"

namespace doppler::engine {
namespace {

using testing::ask;
using testing::Script;
using testing::StreamPtr;
using testing::text;

constexpr uint32_t kTogether = 96, kRun = 20;

// Three runs with text around them.
std::vector<uint32_t> prompt_with_runs() {
  std::vector<uint32_t> prompt(13, 5);
  for (uint32_t i = 0; i < 3; ++i) {
    prompt.insert(prompt.end(), kRun, kTogether);
    prompt.insert(prompt.end(), 11, 7);
  }
  return prompt;
}

TEST(Together, ARunIsInOnePieceThoughAPromptsShareIsSmaller) {
  Script s({.ctx_len = 200, .blocks = 200, .together = kTogether}, {.prefill_share = 8});
  const StreamPtr other = s.submit(ask(text(4, 1), 150));
  s.run_to(*other, 10);
  const StreamPtr late = s.submit(ask(prompt_with_runs(), 5));
  s.run_to(*late, 1);
  uint32_t runs = 0;
  for (const auto& call : s.runner.calls) {
    if (call.piece_rows <= 8) continue;
    EXPECT_EQ(call.piece_rows, kRun);
    ++runs;
  }
  EXPECT_EQ(runs, 3u);
}

TEST(Together, RunsOfSeveralPromptsWaitForAStepThatHasRoom) {
  Script s({.ctx_len = 200, .blocks = 200, .together = kTogether});
  std::vector<StreamPtr> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(s.submit(ask(prompt_with_runs(), 5)));
  s.run();
  for (const StreamPtr& stream : streams) EXPECT_EQ(stream->take().size(), 5u);
  for (const auto& call : s.runner.calls) EXPECT_LE(call.piece_rows, s.runner.max_rows());
}

}  // namespace
}  // namespace doppler::engine
