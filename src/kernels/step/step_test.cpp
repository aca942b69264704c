// The step kernels against the rules of step.h, word for word.
#include "kernels/step/step.h"

#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kVocab = 100;

// A text of `prompt` tokens followed by replayed steps that all choose the token in `token`.
struct Steps {
  KernelRun run{Policy{}, 3};
  TensorView token = run.input(std::vector<uint32_t>{7});
  TensorView ring = run.output(kTokenRing * 4);
  TensorView counts = run.inout(std::vector<uint32_t>(kVocab));
  TensorView recent = run.inout(std::vector<uint32_t>(kPenaltyRing, kNoToken));

  explicit Steps(bool sampled = true) {
    run.state = {.pos = 10, .rows = 1, .ctx_len = 1000, .max_generated = 1000};
    EXPECT_TRUE(run.record([&](Context& ctx) {
      return record(ctx, Step{.token = sampled ? token : TensorView{},
                              .ring = ring,
                              .counts = counts,
                              .recent = recent,
                              .vocab_size = kVocab});
    }));
  }
  void choose(uint32_t t, uint32_t rows = 1) {
    run.overwrite(token, std::vector<uint32_t>{t});
    run.replay(rows);
  }
  uint32_t entry(uint32_t index) { return run.read<uint32_t>(ring, kTokenRing)[index % kTokenRing]; }
  uint32_t count(uint32_t t) { return run.read<uint32_t>(counts, kVocab)[t]; }
};

TEST(Step, WithoutATokenOnlyThePositionMoves) {
  Steps steps(false);
  const StepState before = steps.run.state;
  steps.run.replay(3);
  EXPECT_EQ(steps.run.state.pos, before.pos + 3);
  EXPECT_EQ(steps.run.state.generated, 0u);
  EXPECT_EQ(steps.run.state.ring_index, 0u);
  EXPECT_EQ(steps.entry(0), kPoison);
  steps.run.state.stop_reason = kTokenLimit;
  steps.run.replay(3);
  EXPECT_EQ(steps.run.state.pos, before.pos + 3);
}

TEST(Step, AChunkThatSamplesMovesByItsRowsAndLeavesOneRow) {
  Steps steps;
  steps.run.state.ring_index = kTokenRing + 5;
  steps.choose(42, 3);
  EXPECT_EQ(steps.run.state.pos, 13u);
  EXPECT_EQ(steps.run.state.rows, 1u);
  EXPECT_EQ(steps.run.state.generated, 1u);
  EXPECT_EQ(steps.run.state.ring_index, kTokenRing + 6);
  EXPECT_EQ(steps.run.state.stop_reason, kRunning);
  EXPECT_EQ(steps.entry(5), 42u);
  EXPECT_EQ(steps.run.read<uint32_t>(steps.recent, kPenaltyRing)[13], 42u);
  EXPECT_EQ(steps.count(42), 1u);
}

TEST(Step, ReplaysContinueWithoutTheHost) {
  Steps steps;
  steps.run.replay(1, 5);
  EXPECT_EQ(steps.run.state.pos, 15u);
  EXPECT_EQ(steps.run.state.generated, 5u);
  EXPECT_EQ(steps.count(7), 5u);
}

TEST(Step, TokensLeaveThePenaltiesAfterTheWindow) {
  Steps steps;
  steps.choose(3);
  steps.choose(4);
  steps.run.overwrite(steps.token, std::vector<uint32_t>{5});
  steps.run.replay(1, kPenaltyRing - 2);
  EXPECT_EQ(steps.count(3), 1u);
  steps.choose(5);
  EXPECT_EQ(steps.count(3), 0u);
  EXPECT_EQ(steps.count(4), 1u);
  EXPECT_EQ(steps.count(5), kPenaltyRing - 1);
}

TEST(Step, CountsNeverGoBelowZero) {
  Steps steps;
  steps.run.overwrite(steps.recent, std::vector<uint32_t>(kPenaltyRing, 9));  // but counted nowhere
  steps.choose(3);
  EXPECT_EQ(steps.count(9), 0u);
}

TEST(Step, AStopTokenIsShownOnceThenNothingMoves) {
  Steps steps;
  steps.run.state.stop_token_count = 2;
  steps.run.state.stop_tokens[0] = 50;
  steps.run.state.stop_tokens[1] = 51;
  steps.run.state.stop_tokens[2] = 52;  // past the count
  steps.choose(52);
  EXPECT_EQ(steps.run.state.stop_reason, kRunning);
  steps.choose(51);
  EXPECT_EQ(steps.run.state.stop_reason, kStopToken);
  EXPECT_EQ(steps.entry(1), 51u);
  const StepState stopped = steps.run.state;
  steps.run.overwrite(steps.token, std::vector<uint32_t>{60});
  steps.run.replay(1, 3);
  EXPECT_EQ(steps.run.state.pos, stopped.pos);
  EXPECT_EQ(steps.run.state.generated, stopped.generated);
  EXPECT_EQ(steps.run.state.ring_index, stopped.ring_index + 3);
  for (uint32_t i = 2; i < 5; ++i) EXPECT_EQ(steps.entry(i), kNoToken);
  EXPECT_EQ(steps.count(60), 0u);
}

TEST(Step, IgnoredStopTokensDoNotStop) {
  Steps steps;
  steps.run.state.stop_token_count = 1;
  steps.run.state.stop_tokens[0] = 50;
  steps.run.state.ignore_stop = 1;
  steps.choose(50);
  EXPECT_EQ(steps.run.state.stop_reason, kRunning);
}

TEST(Step, TheTokenLimitStopsAtTheLastToken) {
  Steps steps;
  steps.run.state.max_generated = 2;
  steps.run.replay(1, 3);
  EXPECT_EQ(steps.run.state.stop_reason, kTokenLimit);
  EXPECT_EQ(steps.run.state.generated, 2u);
  EXPECT_EQ(steps.entry(1), 7u);
  EXPECT_EQ(steps.entry(2), kNoToken);
}

TEST(Step, AFullContextStops) {
  Steps steps;
  steps.run.state.ctx_len = 12;
  steps.run.replay(1, 1);
  EXPECT_EQ(steps.run.state.stop_reason, kRunning);  // 11 of 12 places used: the token has one
  steps.run.replay(1, 2);
  EXPECT_EQ(steps.run.state.stop_reason, kContextFull);
  EXPECT_EQ(steps.run.state.pos, 12u);
}

}  // namespace
}  // namespace doppler::kernels::testing
