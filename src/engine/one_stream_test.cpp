// Answers of one sequence, as the scheduler makes them over a scripted runner: no GPU. Tickets in flight, stops,
// limits, sliding, going on with a text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/stream_answer.h"
#include "engine/test_one_runner.h"

namespace doppler::engine {
namespace {

struct Script {
  Counting runner;
  std::vector<uint32_t> held;
  bool cancels = false;  // while the prompt is evaluated
  double piece_seconds = 1000;
  Generation result;
  std::string error;
  std::unique_ptr<Scheduler> scheduler;
  std::shared_ptr<Stream> stream;

  void go(std::vector<uint32_t> prompt, GenerateOptions options, std::vector<uint32_t> stops = {1000},
          const std::vector<uint32_t>& generated = {}) {
    error.clear();
    options.draft_rows = 2;
    scheduler = std::move(
        *Scheduler::create(runner, {.vocab_size = 2000, .tickets_ahead = 3, .piece_seconds = piece_seconds}));
    scheduler->hold(held);
    StreamAnswer answer(nullptr,
                        {.vocab_size = 2000,
                         .ctx_len = runner.ctx,
                         .stop_tokens = std::move(stops),
                         .drafting = model::Drafting::kNext,
                         .drafters = {.next_layer = true}},
                        std::move(prompt), std::move(options));
    answer.go_on_behind(generated);
    bool is_going = !answer.ended();
    while (is_going && error.empty()) {
      is_going = false;
      if (!submit(answer)) break;
      while (!stream->ended() && turn()) {
        if (cancels) scheduler->cancel(*stream);
      }
      const auto taken = answer.take({.tokens = stream->take(),
                                      .logprobs = {},
                                      .ended = stream->ended(),
                                      .reason = stream->reason(),
                                      .error = stream->error(),
                                      .timings = stream->timings()});
      if (!taken) error = taken.error().message();
      is_going = taken && taken->slid;
    }
    while (turn()) {
    }
    held = scheduler->held();
    result = answer.result();
  }
  bool submit(const StreamAnswer& answer) {
    auto request = answer.next_request({});
    auto begun = request ? scheduler->submit(std::move(*request)) : forward(request.error());
    if (begun) stream = std::move(*begun);
    if (!begun) error = begun.error().message();
    return begun.has_value();
  }
  bool turn() {
    Task<Result<bool>> task = scheduler->turn();
    task.start();
    EXPECT_TRUE(task.done());
    const Result<bool> more = task.take();
    if (!more) error = more.error().message();
    return more && *more;
  }
};

TEST(OneStream, FeedsChunksAndCountsTokens) {
  Script run;
  run.go({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {.max_tokens = 20});
  ASSERT_EQ(run.result.tokens.size(), 20u);
  EXPECT_EQ(run.result.tokens.front(), 11);
  EXPECT_EQ(run.result.tokens.back(), 30);
  EXPECT_EQ(run.result.stop, StopReason::kTokenLimit);
  EXPECT_EQ(run.runner.submits, 3u + 2u);  // chunks of 4; then 16 + 3 steps
}

TEST(OneStream, NothingIsQueuedAheadOfARunnerWithOneTicket) {
  Script run;
  run.runner.tickets = 1;
  run.go({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {.max_tokens = 20});
  ASSERT_EQ(run.result.tokens.size(), 20u);
  EXPECT_EQ(run.result.tokens.back(), 30);
  EXPECT_EQ(run.runner.most_outstanding, 1u);
}

// Half of the drafts are wrong: tickets give fewer tokens than they may, and more are queued.
TEST(OneStream, StepsThatDraftGiveAsManyTokensAsTheyGive) {
  Script run;
  run.runner.ctx = 512;
  run.runner.right_drafts = 2;
  run.go({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {.max_tokens = 200});
  ASSERT_EQ(run.result.tokens.size(), 200u);
  for (int32_t i = 0; i < 200; ++i) ASSERT_EQ(run.result.tokens[static_cast<size_t>(i)], 11 + i);
  EXPECT_EQ(run.result.stop, StopReason::kTokenLimit);
  EXPECT_EQ(run.held.size(), 10u + 199u);
  EXPECT_GE(run.result.timings.drafted_tokens, 130u);
  EXPECT_NEAR(run.result.timings.accepted_tokens, run.result.timings.drafted_tokens / 2, 1);
  EXPECT_EQ(run.runner.behind, (std::vector<uint32_t>{5, 9}));  // the tokens after the prompt's chunks of 4
}

TEST(OneStream, StepsThatDraftStopAndSlide) {
  Script run;
  run.runner.right_drafts = 3;
  run.go({1, 2, 3}, {.max_tokens = 50}, {20});
  EXPECT_EQ(run.result.stop, StopReason::kEndOfText);
  EXPECT_EQ(run.result.tokens.back(), 20);
  EXPECT_EQ(run.result.tokens.size(), 17u);
  run.go({1, 2, 3}, {.max_tokens = 150, .when_full = WhenFull::kSlide});
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.result.tokens.size(), 150u);
  EXPECT_EQ(run.result.tokens.back(), 153);
  run.go({1, 2, 3}, {.max_tokens = 150, .when_full = WhenFull::kStop});
  EXPECT_EQ(run.result.stop, StopReason::kContextFull);
}

// A long prompt was queued as a whole, and Ctrl-C waited for its end.
TEST(OneStream, AStopIsSeenBetweenChunksOfThePrompt) {
  Script run;
  run.cancels = true;
  run.go(std::vector<uint32_t>(40, 7), {.max_tokens = 20});
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.result.stop, StopReason::kCancelled);
  EXPECT_TRUE(run.result.tokens.empty());
  EXPECT_EQ(run.runner.submits, 2u);
  EXPECT_EQ(run.held.size(), 8u);
  run.cancels = false;
  run.go(std::vector<uint32_t>(40, 7), {.max_tokens = 20});
  EXPECT_EQ(run.result.tokens.size(), 20u);
  EXPECT_EQ(run.result.timings.cached_tokens, 8u);
}

TEST(OneStream, ASlowDeviceGetsSmallerChunks) {
  Script run;
  run.runner.ctx = 512;
  run.runner.most_rows = 100;
  run.piece_seconds = 0;
  run.go(std::vector<uint32_t>(300, 7), {.max_tokens = 5});
  EXPECT_EQ(run.result.tokens.size(), 5u);
  EXPECT_EQ(run.runner.chunks, (std::vector<uint32_t>{100, 100, 32, 32, 32, 4}));
}

// The persistent kernel may lose its workgroups in mid-sentence; the answer ended with an error.
TEST(OneStream, TokensThatTheRunnerLostAreMadeAgain) {
  for (const bool slides : {false, true}) {
    SCOPED_TRACE(slides);
    Script whole, lost;
    const GenerateOptions options{.max_tokens = 200, .when_full = WhenFull::kSlide, .batch = 8};
    whole.go({1, 2, 3, 4, 5, 6}, options);
    lost.runner.lost_from = slides ? 13 : 4;
    lost.go({1, 2, 3, 4, 5, 6}, options);
    EXPECT_EQ(lost.error, "");
    EXPECT_TRUE(lost.runner.lost);
    EXPECT_EQ(lost.result.tokens, whole.result.tokens);
    EXPECT_EQ(lost.result.timings.evaluated_tokens, 6u);
    EXPECT_EQ(lost.runner.begun_at.size(), whole.runner.begun_at.size() + 1);
  }
}

TEST(OneStream, BrokenLogitsAreASentence) {
  Script run;
  run.runner.broken_at = 20;
  run.go({1, 2, 3}, {.max_tokens = 60});
  EXPECT_NE(run.error.find("The logits after 16 tokens of the answer are no finite numbers"),
            std::string::npos)
      << run.error;
  EXPECT_TRUE(run.held.empty());
}

TEST(OneStream, TokensOfSeveralSubmitsComeBackTogether) {
  Script run;
  run.runner.ctx = 512;
  run.go({1}, {.max_tokens = 100, .batch = 8, .readback_interval = 4});
  ASSERT_EQ(run.result.tokens.size(), 100u);
  EXPECT_EQ(run.result.tokens.back(), 101);
  // 99 steps after the first token: three tickets of 4 submits of 8, then one of 3 steps.
  EXPECT_EQ(run.runner.submits, 1u + 12u + 1u);
  EXPECT_EQ(run.runner.results.size(), 1u + 3u + 1u);
}

// Otherwise a slow device would give 16 tokens at a time.
TEST(OneStream, StepsThatTheOptionsLeaveOpenAreTheSchedulersChoice) {
  for (const uint32_t batch : {0u, 8u}) {
    StreamAnswer answer(nullptr, {.vocab_size = 2000, .ctx_len = 64}, {1}, {.batch = batch});
    const auto request = answer.next_request({});
    ASSERT_TRUE(request.has_value()) << request.error().message();
    EXPECT_EQ(request->batch, batch);
  }
}

TEST(OneStream, TheHostAloneCanLookForTheEnd) {
  Script run;
  run.go({5}, {.max_tokens = 50, .stop_on_device = false}, {9});
  EXPECT_EQ(run.result.tokens, (std::vector<int32_t>{6, 7, 8, 9}));
  EXPECT_EQ(run.result.stop, StopReason::kEndOfText);
  EXPECT_TRUE(run.runner.settings.stop_tokens.empty());
}

TEST(OneStream, StopTokenEndsAndIsReported) {
  Script run;
  run.go({5}, {.max_tokens = 50}, {9});
  EXPECT_EQ(run.result.tokens, (std::vector<int32_t>{6, 7, 8, 9}));
  EXPECT_EQ(run.result.stop, StopReason::kEndOfText);
}

TEST(OneStream, IgnoreEosGoesOn) {
  Script run;
  run.go({5}, {.max_tokens = 10, .ignore_eos = true}, {9});
  EXPECT_EQ(run.result.tokens.size(), 10u);
}

TEST(OneStream, FullContextStopsOrSlides) {
  Script stop;
  stop.go({1, 2, 3}, {.max_tokens = 0});
  EXPECT_EQ(stop.result.stop, StopReason::kContextFull);
  EXPECT_EQ(stop.result.tokens.size(), 62u);  // 61 positions are left, and the last token needs none

  Script slide;
  slide.go({1, 2, 3}, {.max_tokens = 200, .when_full = WhenFull::kSlide});
  EXPECT_EQ(slide.result.stop, StopReason::kTokenLimit);
  ASSERT_EQ(slide.result.tokens.size(), 200u);
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(slide.result.tokens[i], static_cast<int32_t>(4 + i));
}

TEST(OneStream, SlidesInTheSmallestContexts) {
  for (const uint32_t ctx : {1u, 2u, 3u}) {
    Script s;
    s.runner.ctx = ctx;
    s.go({1, 2, 3, 4}, {.max_tokens = 5, .when_full = WhenFull::kSlide, .batch = 16});
    EXPECT_EQ(s.error, "");
    EXPECT_EQ(s.result.tokens, (std::vector<int32_t>{5, 6, 7, 8, 9})) << "context " << ctx;
  }
}

TEST(OneStream, LogitBiasesAreChecked) {
  const std::pair<std::pair<int32_t, float>, const char*> cases[] = {
      {{2000, 1.0f}, "The logit bias names token 2000, outside the vocabulary; allowed is 0 to 1999."},
      {{-1, 1.0f}, "The logit bias names token -1, outside the vocabulary; allowed is 0 to 1999."},
      {{7, NAN}, "The logit bias of token 7 is not a number."},
  };
  for (const auto& [bias, sentence] : cases) {
    Script s;
    GenerateOptions options;
    options.sampling.logit_bias = {bias};
    s.go({1}, options);
    EXPECT_EQ(s.error, sentence);
  }
}

TEST(OneStream, SamplersReachTheRunner) {
  Script run;
  GenerateOptions options{.max_tokens = 7};
  SamplingOptions& s = options.sampling;
  s.typical_p = 0.5f;
  s.xtc_probability = 0.25f;
  s.mirostat_tau = 5;
  s.dry_multiplier = 0.8f;
  s.dry_range = 100;
  s.min_tokens = 7;
  run.go({1}, options);
  const kernels::SampleParams& sent = run.runner.settings.sampling;
  EXPECT_FALSE(run.runner.settings.greedy);
  EXPECT_EQ(sent.typical_p, 0.5f);
  EXPECT_EQ(sent.xtc_probability, 0.25f);
  EXPECT_EQ(sent.mirostat_tau, 5.0f);
  EXPECT_EQ(sent.dry_range, 100u);
  EXPECT_EQ(sent.min_tokens, 7u);
  s.temperature = 0;  // greedy, but for DRY and the least number of tokens
  run.go({1}, options);
  EXPECT_FALSE(run.runner.settings.greedy);
  EXPECT_EQ(run.runner.settings.sampling.mirostat_tau, 0.0f);
  s.dry_multiplier = 0;
  s.min_tokens = 0;
  run.go({1}, options);
  EXPECT_TRUE(run.runner.settings.greedy);
  s.xtc_threshold = 0.6f;
  run.go({1}, options);
  EXPECT_NE(run.error.find("xtc-threshold is 0.6; allowed is 0 to 0.5"), std::string::npos) << run.error;
}

TEST(OneStream, ASlideDoesNotAskForTheLeastTokensAgain) {
  Script slide;
  GenerateOptions options{.max_tokens = 200, .when_full = WhenFull::kSlide};
  options.sampling.min_tokens = 20;
  slide.go({1, 2, 3}, options);
  EXPECT_GT(slide.runner.begun_at.size(), 1u);
  EXPECT_EQ(slide.runner.settings.sampling.min_tokens, 0u);
}

TEST(OneStream, ReusesCachedTokens) {
  Script run;
  run.go({1, 2, 3}, {.max_tokens = 5});
  EXPECT_EQ(run.held, (std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7}));
  run.go({1, 2, 3, 4, 5, 6, 7, 8, 20}, {.max_tokens = 2});
  EXPECT_EQ(run.runner.begun_at.back(), 7u);
  EXPECT_EQ(run.result.tokens, (std::vector<int32_t>{21, 22}));
}

// A recurrent state cannot be cut: the runner says where it can go on.
TEST(OneStream, ContinuesFromWhereTheRunnerCan) {
  Script run;
  run.go({1, 2, 3}, {.max_tokens = 5});
  run.runner.stands_at = 3;
  run.go({1, 2, 3, 4, 5, 20}, {.max_tokens = 2});
  EXPECT_EQ(run.runner.begun_at.back(), 3u);
  EXPECT_EQ(run.held, (std::vector<uint32_t>{1, 2, 3, 4, 5, 20, 21}));
}
TEST(OneStream, GoesOnBehindTheTokensOfALostDevice) {
  Script whole, rest, ended;
  whole.go({1, 2, 3}, {.max_tokens = 30});
  rest.go({1, 2, 3}, {.max_tokens = 30}, {1000}, {4, 5, 6, 7});
  EXPECT_EQ(rest.result.tokens, whole.result.tokens);
  EXPECT_EQ(rest.runner.settings.generated, 4u);  // the random counter goes on
  EXPECT_EQ(rest.result.timings.prompt_tokens, 3u);
  ended.go({1, 2, 3}, {.max_tokens = 2}, {1000}, {4, 5});
  EXPECT_EQ(ended.result.stop, StopReason::kTokenLimit);
  EXPECT_EQ(ended.runner.submits, 0u);
}

TEST(OneStream, BadInputIsOneSentence) {
  Script run;
  run.go({}, {});
  EXPECT_NE(run.error.find("prompt is empty"), std::string::npos);
  run.go({2000}, {});
  EXPECT_NE(run.error.find("0 to 1999"), std::string::npos);
  run.go({1}, {.batch = 300});
  EXPECT_NE(run.error.find("batch is 300; allowed is 1 to 256"), std::string::npos);
  run.go({1}, {.batch = 32, .readback_interval = 9});
  EXPECT_NE(run.error.find("readback-interval is 9; allowed is 1 to 8"), std::string::npos);
  run.go(std::vector<uint32_t>(64, 1), {});
  EXPECT_NE(run.error.find("context holds 64"), std::string::npos);
}

}  // namespace
}  // namespace doppler::engine
