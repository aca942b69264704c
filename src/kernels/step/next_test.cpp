// From the best of the tiles to the next step's input: every variant chooses the same token, moves the state by the
// rules of step.h, and makes the same row.
#include <bit>
#include <cmath>

#include "kernels/linear/test_weights.h"
#include "kernels/step/variants.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kVocab = 300, kHidden = 288;
constexpr float kEps = 1e-5f, kScale = 17.0f;

// The key of a positive logit (common/argmax_key.wgsl).
uint32_t key(float logit) { return std::bit_cast<uint32_t>(logit) | 0x80000000u; }

// A plan that ends with Next, over `count` bests that are all 1 at id 200 + i, except those given.
struct NextRun {
  KernelRun run;
  TestWeight table;
  Weight weight;
  std::vector<float> norm_weight = random_floats(kHidden, 4);
  std::vector<uint32_t> pairs;
  TensorView best, ring;
  Next op;
  bool ready = false;

  NextRun(const Policy& policy, uint32_t count, WeightFormat format = WeightFormat::kTileQ6)
      : run(policy, 3),
        table(random_weight(format, kVocab, kHidden, 3)),
        weight(upload(run, table)),
        pairs(2 * count),
        best(run.input(std::vector<uint32_t>(2 * count))),
        ring(run.output(kTokenRing * 4)),
        op{.sample = {}, .step = {}, .input = {.table = weight}} {
    const TensorView counts = run.inout(std::vector<uint32_t>(kVocab));
    op.sample = {.logits = {},
                 .best = best,
                 .best_count = count,
                 .counts = counts,
                 .token = run.output(4),
                 .vocab_size = kVocab,
                 .greedy = true};
    op.step = {.token = {},
               .ring = ring,
               .counts = counts,
               .recent = run.inout(std::vector<uint32_t>(kPenaltyRing, kNoToken)),
               .vocab_size = kVocab};
    op.input.scale = kScale;
    op.input.norm_weight = run.input(norm_weight);
    op.input.eps = kEps;
    op.input.x = run.output(kHidden * 4);
    op.input.h = {.buffer = run.output(NormedRow::bytes(kHidden)), .k = kHidden, .q8 = true};
    for (uint32_t i = 0; i < count; ++i) set(i, 1, 200 + i % 100);
    run.state = {.pos = 10, .rows = 1, .ctx_len = 1000, .max_generated = 1000};
    ready = run.record([&](Context& ctx) { return record(ctx, op); });
  }

  void set(uint32_t i, float logit, uint32_t id) {
    pairs[2 * i] = key(logit);
    pairs[2 * i + 1] = id;
  }
  void replay(uint32_t rows = 1, uint32_t times = 1) {
    run.overwrite(best, pairs);
    run.replay(rows, times);
  }
  uint32_t entry(uint32_t index) { return run.read<uint32_t>(ring, kTokenRing)[index % kTokenRing]; }
  void expect_row(uint32_t token) {
    const std::vector<float> x = run.read<float>(op.input.x, kHidden);
    std::vector<double> want(kHidden);
    double squares = 0;
    for (uint32_t i = 0; i < kHidden; ++i) {
      want[i] = table.values[size_t{token} * kHidden + i] * kScale;
      ASSERT_NEAR(x[i], want[i], 2e-7 * (std::fabs(want[i]) + kScale)) << "column " << i;
      squares += want[i] * want[i];
    }
    const double factor = 1 / std::sqrt(squares / kHidden + double{kEps});
    for (uint32_t i = 0; i < kHidden; ++i) want[i] *= factor * norm_weight[i];
    const auto bytes = run.read<uint8_t>(op.input.h.buffer, NormedRow::bytes(kHidden));
    std::vector<float> h(kHidden);
    std::memcpy(h.data(), bytes.data() + NormedRow::f32_offset(kHidden), kHidden * 4);
    EXPECT_LT(rel_l2(h, want), 1e-6);
    expect_q8({bytes.begin(), bytes.begin() + q8_bytes(1, kHidden)}, h, 1, 1, kHidden);
  }
};

template <class Body>
void for_each_next(Body body) {
  for_each_variant("next", next_variants(), [&](const Policy& policy) { body(policy); });
}

TEST(Next, TheBestTokenIsTheNextRow) {
  for_each_next([](const Policy& policy) {
    for (const uint32_t count : {1u, 37u, 512u, 4008u, 8193u}) {
      SCOPED_TRACE(format_text("%u bests", count));
      NextRun next(policy, count);
      if (!next.ready) return;
      next.set(count - 1, 2, 7);
      next.replay();
      EXPECT_EQ(next.entry(0), 7u);
      next.expect_row(7);
      if (count == 1) continue;
      next.set(count / 2, 2, 5);  // as good, and lower
      next.replay();
      EXPECT_EQ(next.entry(1), 5u);
      next.expect_row(5);
    }
  });
}

TEST(Next, AnyTableGivesTheRow) {
  for_each_next([](const Policy& policy) {
    for (const WeightFormat format :
         {WeightFormat::kF32, WeightFormat::kBF16, WeightFormat::kQ8_0, WeightFormat::kTileQ4,
          WeightFormat::kTileQ5, WeightFormat::kTileQ8, WeightFormat::kTileF16}) {
      SCOPED_TRACE(weight_format_info(format).name);
      NextRun next(policy, 10, format);
      if (!next.ready) return;
      next.set(3, 2, kVocab - 1);
      next.replay();
      EXPECT_EQ(next.entry(0), kVocab - 1);
      next.expect_row(kVocab - 1);
    }
  });
}

TEST(Next, TheStateMovesOn) {
  for_each_next([](const Policy& policy) {
    NextRun next(policy, 10);
    if (!next.ready) return;
    next.run.state.ring_index = kTokenRing + 5;
    next.replay(3);
    EXPECT_EQ(next.run.state.pos, 13u);
    EXPECT_EQ(next.run.state.rows, 1u);
    EXPECT_EQ(next.run.state.generated, 1u);
    EXPECT_EQ(next.run.state.ring_index, kTokenRing + 6);
    EXPECT_EQ(next.run.state.stop_reason, kRunning);
    EXPECT_EQ(next.entry(5), 200u);
    next.replay(1, 5);
    EXPECT_EQ(next.run.state.pos, 18u);
    EXPECT_EQ(next.run.state.generated, 6u);
  });
}

TEST(Next, EveryStopTokenIsShownOnceThenNothingMoves) {
  for_each_next([](const Policy& policy) {
    NextRun next(policy, 10);
    if (!next.ready) return;
    const StepState fresh = next.run.state;
    for (const uint32_t count : {1u, 2u, kMaxStopTokens}) {
      next.run.state = fresh;
      next.run.state.stop_token_count = count;
      for (uint32_t i = 0; i < kMaxStopTokens; ++i) next.run.state.stop_tokens[i] = 50 + i;
      const StepState start = next.run.state;
      if (count < kMaxStopTokens) {
        next.set(4, 2, 50 + count);  // past the count
        next.replay();
        EXPECT_EQ(next.run.state.stop_reason, kRunning) << count;
      }
      next.run.state = start;
      next.set(4, 2, 49 + count);
      next.replay(1, 3);
      EXPECT_EQ(next.run.state.stop_reason, kStopToken) << count;
      EXPECT_EQ(next.run.state.pos, 11u);
      EXPECT_EQ(next.run.state.generated, 1u);
      EXPECT_EQ(next.run.state.ring_index, 3u);
      EXPECT_EQ(next.entry(0), 49 + count);
      EXPECT_EQ(next.entry(1), kNoToken);
      EXPECT_EQ(next.entry(2), kNoToken);
      next.run.state = start;
      next.run.state.ignore_stop = 1;
      next.replay();
      EXPECT_EQ(next.run.state.stop_reason, kRunning);
    }
  });
}

TEST(Next, LimitsStop) {
  for_each_next([](const Policy& policy) {
    NextRun next(policy, 10);
    if (!next.ready) return;
    const StepState fresh = next.run.state;
    next.run.state.max_generated = 2;
    next.replay(1, 3);
    EXPECT_EQ(next.run.state.stop_reason, kTokenLimit);
    EXPECT_EQ(next.run.state.generated, 2u);
    EXPECT_EQ(next.entry(2), kNoToken);
    next.run.state = fresh;
    next.run.state.ctx_len = 12;
    next.replay(1, 1);
    EXPECT_EQ(next.run.state.stop_reason, kRunning);
    next.replay(1, 2);
    EXPECT_EQ(next.run.state.stop_reason, kContextFull);
    EXPECT_EQ(next.run.state.pos, 12u);
  });
}

TEST(Next, SampledTokensRefuseToBeFused) {
  Policy policy;
  policy.forced["next"] = "next.fused";
  KernelRun run(policy);
  const TestWeight test = random_weight(WeightFormat::kF16, 8, 64, 1);
  const Weight table = upload(run, test);
  const Result<void> recorded = run.try_record(
      [&](Context& ctx) { return record(ctx, Next{.sample = {}, .step = {}, .input = {.table = table}}); });
  ASSERT_FALSE(recorded);
  EXPECT_NE(recorded.error().sentence().find("the token is drawn, in dispatches of its own"),
            std::string::npos)
      << recorded.error().sentence();
}

}  // namespace
}  // namespace doppler::kernels::testing
