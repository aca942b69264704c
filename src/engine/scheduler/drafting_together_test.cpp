// Several sequences that draft in the same steps: each text is the one that it would be by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/scheduler/test_script.h"

namespace doppler::engine {
namespace {

using testing::ask;
using testing::RunnerShape;
using testing::Script;
using testing::StreamPtr;
using testing::TestSequenceRunner;
using testing::text;

// A request that drafts. Its prediction is the answer with every `edits`-th token changed.
Request drafting(const RunnerShape& shape, std::vector<uint32_t> prompt, uint32_t max_tokens, uint32_t edits,
                 DraftUse use = DraftUse::kAlways) {
  Request out = ask(std::move(prompt), max_tokens);
  out.settings.drafter = model::Drafter::kLookup;
  out.settings.prediction = TestSequenceRunner::alone(shape, out.tokens, out.settings);
  for (size_t i = edits; i < out.settings.prediction.size(); i += edits + 1) ++out.settings.prediction[i];
  out.drafts = DraftPolicy(use);
  return out;
}

uint32_t steps_with_drafts(const Script& s) {
  return static_cast<uint32_t>(
      std::ranges::count_if(s.runner.calls, [](const auto& call) { return !call.drafts.empty(); }));
}

TEST(DraftingTogether, EachTextIsItsOwn) {
  for (const uint32_t window : {0u, 6u}) {
    std::mt19937 engine(7 + window);
    const auto random = [&] { return static_cast<uint32_t>(engine()); };
    RunnerShape shape{.ctx_len = 120, .blocks = 70, .window = window, .window_blocks = 2};
    Script s(shape);
    s.runner.draft_kinds = {4, 8, 16};
    std::vector<std::pair<StreamPtr, Request>> all;
    for (uint32_t i = 0; i < 12; ++i) {
      Request request = drafting(shape, text(3 + random() % 20, i), 5 + random() % 80, 6 + random() % 20);
      if (i % 4 == 3) request.settings.drafter = model::Drafter::kNone;
      if (i % 5 == 4) request.settings.stop_tokens = {static_cast<uint32_t>(random() % shape.vocab)};
      all.emplace_back(s.submit(request), request);
      for (uint32_t turns = static_cast<uint32_t>(random() % 6); turns > 0; --turns) s.turn();
    }
    s.run();
    uint64_t accepted = 0;
    for (const auto& [stream, request] : all) {
      s.expect_alone(stream, request);
      accepted += stream->timings().drafts.accepted;
      if (request.settings.drafter == model::Drafter::kNone) {
        EXPECT_EQ(stream->timings().drafts.drafted, 0u);
      }
    }
    EXPECT_GT(accepted, 100u);
    EXPECT_GT(steps_with_drafts(s), 20u);
  }
}

// The last row of a step is the answer's last token at most, and positions after the context are not written.
TEST(DraftingTogether, StepsEndWithTheAnswer) {
  RunnerShape shape{.ctx_len = 40};
  Script s(shape);
  s.runner.draft_kinds = {32};
  std::vector<std::pair<StreamPtr, Request>> all;
  for (uint32_t i = 0; i < 3; ++i) {
    const Request request = drafting(shape, text(8 + i, i), i == 2 ? 1000 : 11 + i, 100);
    all.emplace_back(s.submit(request), request);
  }
  s.run();
  for (const auto& [stream, request] : all) s.expect_alone(stream, request);
  EXPECT_EQ(all[2].first->reason(), StopReason::kContextFull);
}

TEST(DraftingTogether, ForecastsDecideWithoutAStep) {
  RunnerShape shape{.ctx_len = 200, .blocks = 200};
  Script s(shape);
  s.runner.draft_kinds = {4, 8, 16, 32};
  const Request right = drafting(shape, text(9, 1), 120, 1000, DraftUse::kWhereFaster);
  const Request wrong = drafting(shape, text(9, 2), 120, 3, DraftUse::kWhereFaster);
  const StreamPtr first = s.submit(right), second = s.submit(wrong);
  s.run();
  s.expect_alone(first, right);
  s.expect_alone(second, wrong);
  EXPECT_GT(first->timings().drafts.accepted, 50u);
  EXPECT_EQ(second->timings().drafts.drafted, 0u);
}

TEST(DraftingTogether, WithoutPlansNothingWaits) {
  RunnerShape shape;
  Script s(shape);
  const Request request = drafting(shape, text(9, 1), 40, 1000);
  const StreamPtr stream = s.submit(request);
  s.run();
  s.expect_alone(stream, request);
  EXPECT_EQ(steps_with_drafts(s), 0u);
  EXPECT_EQ(s.runner.most_outstanding, 2u);
}

}  // namespace
}  // namespace doppler::engine
