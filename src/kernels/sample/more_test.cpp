// Tests the samplers of more.h against the oracle, draw by draw, each by itself and together. Tests the state that they
// keep from token to token. Sequences beside others draw as they would by themselves.
#include "kernels/sample/more.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/sample/sample_oracle.h"
#include "kernels/step/step.h"
#include "kernels/testing/tables_image.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kVocab = 1500;
constexpr uint64_t kSeed = 0xFEDCBA9876543210ull;

uint32_t random_word(uint32_t generated, uint32_t number) {
  return philox4x32_10({generated, number, 0, 0},
                       {static_cast<uint32_t>(kSeed), static_cast<uint32_t>(kSeed >> 32)})[0];
}

std::vector<uint8_t> params_bytes(const SampleParams& params) {
  std::vector<uint8_t> bytes(kSampleParamsStride);
  std::memcpy(bytes.data(), &params, sizeof(params));
  return bytes;
}

MoreState more_state(const SampleInput& in) {
  MoreState more{.mu = in.mu, .count = static_cast<uint32_t>(in.history.size())};
  for (size_t i = 0; i < in.history.size(); ++i) more.history[i % kDryHistory] = in.history[i];
  return more;
}

std::vector<uint32_t> breaker_bits(const SampleInput& in) {
  std::vector<uint32_t> bits(breaker_words(kVocab));
  for (const uint32_t token : in.breakers) bits[token / 32] |= 1u << (token % 32);
  return bits;
}

// Logits as of a model: some likely tokens of different weights, and many that are not.
SampleInput random_input(uint64_t seed, SampleParams params) {
  SampleInput in{.logits = random_floats(kVocab, seed, 2), .params = params};
  for (float& l : in.logits) l = std::fmax(std::fmin(l, 4.0f), -8.0f);
  for (uint32_t i = 0; i < 30; ++i)
    in.logits[(i * 401 + seed * 7) % kVocab] = 9.0f - 0.13f * static_cast<float>(i);
  in.mu = 2 * params.mirostat_tau;
  return in;
}

// A plan of one sequence that draws from the same logits step after step, with the samplers of more.h or without.
class OneSequence {
 public:
  explicit OneSequence(bool more) {
    Sample op{.logits = logits_,
              .params = params_,
              .bias = run_.input(std::vector<uint32_t>(kMaxLogitBias * 2)),
              .counts = counts_,
              .token = token_,
              .vocab_size = kVocab};
    if (more) {
      op.more = more_;
      op.breakers = breakers_;
    }
    const Step step{.token = token_,
                    .ring = run_.output(kTokenRing * 4),
                    .counts = counts_,
                    .recent = run_.inout(std::vector<uint32_t>(kPenaltyRing, kNoToken)),
                    .vocab_size = kVocab};
    EXPECT_TRUE(run_.record([&](Context& ctx) -> Result<void> {
      DP_CHECK(ctx.plan.copy(pristine_.sub(0, kVocab * 4), logits_.sub(0, kVocab * 4), "test"));
      DP_CHECK(record(ctx, op));
      return record(ctx, step);
    }));
  }
  void begin(const SampleInput& in) {
    run_.state = {.ctx_len = UINT32_MAX,
                  .generated = in.generated,
                  .max_generated = UINT32_MAX,
                  .seed_low = static_cast<uint32_t>(kSeed),
                  .seed_high = static_cast<uint32_t>(kSeed >> 32),
                  .stop_token_count = static_cast<uint32_t>(in.stop_tokens.size())};
    std::ranges::copy(in.stop_tokens, run_.state.stop_tokens);
    run_.overwrite(pristine_, in.logits);
    run_.overwrite(params_, params_bytes(in.params));
    run_.overwrite(more_, std::vector{more_state(in)});
    run_.overwrite(breakers_, breaker_bits(in));
    run_.overwrite(counts_, std::vector<uint32_t>(kVocab));
  }
  uint32_t draw() {
    run_.replay();
    run_.state.stop_reason = kRunning;  // the test goes on
    return run_.read<uint32_t>(token_, 1)[0];
  }
  MoreState more() { return run_.read<MoreState>(more_, 1)[0]; }

 private:
  KernelRun run_;
  TensorView pristine_ = run_.input(std::vector<float>(kVocab));
  TensorView logits_ = run_.output(kVocab * 4);
  TensorView params_ = run_.input(std::vector<uint8_t>(kSampleParamsStride));
  TensorView counts_ = run_.inout(std::vector<uint32_t>(kVocab));
  TensorView token_ = run_.output(4);
  TensorView more_ = run_.inout(std::vector<MoreState>(1));
  TensorView breakers_ = run_.input(std::vector<uint32_t>(breaker_words(kVocab)));
};

OneSequence& with_more() {
  device();  // made before it, so that it outlives it
  static OneSequence one(true);
  return one;
}

// As in sample_test, a draw may fall where device and oracle round differently: one of 50 here, as sums do too.
std::vector<uint32_t> expect_same_tokens(SampleInput in, uint32_t draws = 60) {
  OneSequence& one = with_more();
  one.begin(in);
  std::vector<uint32_t> tokens;
  uint32_t different = 0;
  for (uint32_t i = 0; i < draws; ++i) {
    in.xtc_random = random_word(in.generated, 1);
    const SampleOracle oracle = sample_oracle(in);
    const uint32_t want = oracle.draw(random_word(in.generated, 0));
    const uint32_t got = one.draw();
    if (got != want) {
      EXPECT_LE(++different, draws / 50) << "draw " << i << ": token " << got << " instead of " << want;
      if (different > draws / 50) return tokens;
    }
    const MoreState more = one.more();
    if (in.params.mirostat_tau > 0 && got == want) {
      EXPECT_NEAR(more.mu, oracle.mu_after(in, got), 1e-3);
    }
    in.mu = more.mu;
    EXPECT_EQ(more.history[in.history.size() % kDryHistory], got);
    in.history.push_back(got);
    EXPECT_EQ(more.count, in.history.size());
    ++in.generated;
    tokens.push_back(got);
  }
  return tokens;
}

constexpr SampleParams kOff{.temperature = 1, .top_p = 1, .min_p = 0, .top_k = 0};
SampleParams with(auto change) {
  SampleParams params = kOff;
  change(params);
  return params;
}

class MoreTest : public ::testing::TestWithParam<SampleParams> {};

TEST_P(MoreTest, DrawsTheOraclesToken) { expect_same_tokens(random_input(31, GetParam())); }

INSTANTIATE_TEST_SUITE_P(
    Settings, MoreTest,
    ::testing::Values(
        kOff, SampleParams{}, with([](auto& p) { p.top_n_sigma = 1; }),
        with([](auto& p) { p.top_n_sigma = 2, p.temperature = 3; }),
        with([](auto& p) { p.top_n_sigma = 1.5f, p.top_p = 0.8f; }),
        with([](auto& p) { p.typical_p = 0.5f; }), with([](auto& p) { p.typical_p = 0.95f, p.top_k = 300; }),
        with([](auto& p) { p.typical_p = 0, p.top_p = 0.9f; }),
        with([](auto& p) { p.typical_p = 0.2f, p.temperature = 0.05f; }),
        with([](auto& p) { p.xtc_probability = 1, p.xtc_threshold = 0.02f; }),
        with([](auto& p) { p.xtc_probability = 0.5f, p.xtc_threshold = 0.01f, p.top_k = 40; }),
        with([](auto& p) { p.xtc_probability = 1, p.xtc_threshold = 0.03f, p.temperature = 0.05f; }),
        with([](auto& p) { p.xtc_probability = 1, p.xtc_threshold = 0.6f, p.temperature = 0.1f; }),
        with([](auto& p) { p.xtc_probability = 1, p.xtc_threshold = 0.5f; }),
        with([](auto& p) { p.dynatemp_range = 0.5f; }),
        with([](auto& p) { p.dynatemp_range = 3, p.dynatemp_exponent = 2, p.top_k = 100; }),
        with([](auto& p) { p.dynatemp_range = 2, p.top_k = 1; }), with([](auto& p) { p.mirostat_tau = 5; }),
        with([](auto& p) { p.mirostat_tau = 2, p.temperature = 2; }),
        with([](auto& p) { p.mirostat_tau = 3, p.mirostat_eta = 0.5f, p.top_k = 2, p.typical_p = 0.1f; }),
        with([](auto& p) { p.dry_multiplier = 0.8f, p.top_k = 4; }),
        with([](auto& p) { p.dry_multiplier = 2, p.dry_allowed_length = 1, p.top_k = 2, p.dry_range = 20; }),
        with([](auto& p) {
          p.top_n_sigma = 3, p.top_k = 200, p.typical_p = 0.9f, p.top_p = 0.95f, p.min_p = 0.001f;
          p.xtc_probability = 0.5f, p.xtc_threshold = 0.02f, p.dynatemp_range = 0.7f, p.dry_multiplier = 1;
        })));

TEST(More, WithoutAnyTheTokensAreThoseOfThePlainChain) {
  OneSequence plain(false);
  for (const SampleParams& params :
       {kOff, SampleParams{}, with([](auto& p) { p.top_p = 0.7f, p.temperature = 3; }),
        with([](auto& p) { p.min_p = 0.02f, p.temperature = 2; }),
        with([](auto& p) { p.top_k = 400, p.top_p = 0.97f; }), with([](auto& p) { p.greedy = 1; })}) {
    const SampleInput in = random_input(32, params);
    plain.begin(in);
    with_more().begin(in);
    for (uint32_t i = 0; i < 40; ++i) EXPECT_EQ(with_more().draw(), plain.draw()) << i;
  }
}

TEST(More, StopTokensComeNoSoonerThanAllowed) {
  SampleInput in = random_input(33, with([](auto& p) { p.min_tokens = 12, p.temperature = 0.01f; }));
  in.logits[5] = in.logits[900] = 30;
  in.stop_tokens = {900, 5};
  in.generated = 3;
  const std::vector<uint32_t> tokens = expect_same_tokens(in, 20);
  ASSERT_EQ(tokens.size(), 20u);
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(tokens[i] == 5 || tokens[i] == 900, i >= 9) << i;
}

TEST(More, DryEndsWhatRepeats) {
  SampleInput in = random_input(34, with([](auto& p) { p.dry_multiplier = 4, p.temperature = 0.01f; }));
  in.logits[40] = 20;
  in.logits[41] = 19;
  in.logits[42] = 18;
  const std::vector<uint32_t> tokens = expect_same_tokens(in, 30);
  ASSERT_EQ(tokens.size(), 30u);
  EXPECT_EQ(tokens[0], 40u);
  EXPECT_NE(tokens[3], 40u);
  in.breakers = {40};
  for (const uint32_t token : expect_same_tokens(in, 10)) EXPECT_EQ(token, 40u);
}

TEST(More, DryReadsALongPrompt) {
  SampleInput in = random_input(35, with([](auto& p) { p.dry_multiplier = 0.5f, p.top_k = 6; }));
  for (uint32_t i = 0; i < 2 * kDryHistory + 77; ++i) in.history.push_back(i * i % 113);
  in.logits[3] = in.logits[50] = 11;
  expect_same_tokens(in, 20);
  in.params.dry_range = 200;
  in.breakers = {7, 64, 1499};
  expect_same_tokens(in, 20);
}

TEST(More, BrokenLogitsGiveNoToken) {
  for (const SampleParams& params :
       {with([](auto& p) { p.top_n_sigma = 1, p.typical_p = 0.5f, p.xtc_probability = 1; }),
        with([](auto& p) { p.mirostat_tau = 4; }), with([](auto& p) { p.dynatemp_range = 1; })}) {
    SampleInput in{.logits = std::vector<float>(kVocab, -std::numeric_limits<float>::infinity()),
                   .params = params};
    with_more().begin(in);
    for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(with_more().draw(), kNotFinite);
  }
}

// Slots with a sampler each choose what they would by themselves, and keep their own state.
TEST(More, EachSlotDrawsAsItWouldAlone) {
  constexpr uint32_t kSequences = 6;
  std::vector<SampleInput> inputs;
  for (const SampleParams& params :
       {with([](auto& p) { p.mirostat_tau = 4; }), SampleParams{},
        with([](auto& p) { p.dry_multiplier = 3, p.typical_p = 0.6f, p.min_tokens = 9; }),
        with([](auto& p) { p.top_n_sigma = 2, p.xtc_probability = 0.5f, p.xtc_threshold = 0.01f; }),
        with([](auto& p) { p.greedy = 1; })}) {
    SampleInput in = random_input(60 + inputs.size(), params);
    in.generated = static_cast<uint32_t>(7 * inputs.size() % 11);
    in.stop_tokens = {static_cast<uint32_t>(std::ranges::max_element(in.logits) - in.logits.begin())};
    for (uint32_t i = 0; i < 40 * inputs.size(); ++i) in.history.push_back(i % 7);
    inputs.push_back(std::move(in));
  }
  const std::vector<uint32_t> slots = {4, 1, 5, 0, 2};
  KernelRun run(Policy{}, kSequences);
  TablesImage image({.sequences = kSequences, .rows = 10});
  image.sampled_state().rows = static_cast<uint32_t>(inputs.size());
  std::vector<float> logits;
  std::vector<uint8_t> params(kSequences * kSampleParamsStride);
  std::vector<MoreState> more(kSequences);
  std::vector<uint32_t> breakers(kSequences * breaker_words(kVocab));
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const SampleInput& in = inputs[i];
    image.sampled(i) = {slots[i], i};
    SequenceRecord& record = image.record(slots[i]);
    record = {.generated = in.generated,
              .seed_low = static_cast<uint32_t>(kSeed),
              .seed_high = static_cast<uint32_t>(kSeed >> 32),
              .stop_token_count = 1};
    record.stop_tokens[0] = in.stop_tokens[0];
    logits.insert(logits.end(), in.logits.begin(), in.logits.end());
    std::ranges::copy(params_bytes(in.params), params.begin() + slots[i] * kSampleParamsStride);
    more[slots[i]] = more_state(in);
  }
  logits.resize(kSequences * kVocab);
  const TensorView state = run.input(image.bytes);
  const TensorView token = run.output(kSequences * 4);
  const TensorView more_view = run.inout(more);
  const Sample op{.logits = run.inout(logits),
                  .params = run.input(params),
                  .bias = run.input(std::vector<uint32_t>(kSequences * 2 * kMaxLogitBias)),
                  .counts = run.input(std::vector<uint32_t>(kSequences * kVocab)),
                  .token = token,
                  .more = more_view,
                  .breakers = run.input(breakers),
                  .vocab_size = kVocab};
  ASSERT_TRUE(run.record([&](Context& ctx) {
    Context many = with_tables(ctx, image, state);
    return record(many, op);
  }));
  run.replay(static_cast<uint32_t>(inputs.size()));
  const auto tokens = run.read<uint32_t>(token, kSequences);
  const auto after = run.read<MoreState>(more_view, kSequences);
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE(i);
    with_more().begin(inputs[i]);
    EXPECT_EQ(tokens[i], with_more().draw());
    const MoreState alone = with_more().more();
    EXPECT_EQ(std::memcmp(&after[slots[i]], &alone, sizeof(alone)), 0);
  }
  EXPECT_EQ(after[3].count, 0u);
}

TEST(More, GreedyPlansRefuseThem) {
  KernelRun run;
  const TensorView any = run.input(std::vector<float>(64));
  const Result<void> recorded = run.try_record([&](Context& ctx) {
    return record(ctx, Sample{.logits = any, .token = any, .more = any, .vocab_size = 64, .greedy = true});
  });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(),
            "The samplers of more.h were given to a greedy plan, which has none.");
}

}  // namespace
}  // namespace doppler::kernels::testing
