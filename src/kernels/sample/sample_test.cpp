// The sampling chain against sample_oracle: the same token for the same random number, through every
// combination of filters; the kept set and the frequencies; penalties as tokens come; and the values that
// break naive code.
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "kernels/sample/sample_oracle.h"
#include "kernels/sample/variants.h"
#include "kernels/step/step.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint64_t kSeed = 0x1234567890ABCDEFull;

uint32_t random_word(uint64_t seed, uint32_t generated) {
  return philox4x32_10({generated, 0, 0, 0},
                       {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)})[0];
}

// A plan that samples from the same logits again and again, the counter going up: `draws` tokens in one
// submit.
std::vector<uint32_t> sample_on_device(const SampleInput& in, uint32_t draws, const Policy& policy,
                                       uint64_t seed = kSeed) {
  const auto vocab = static_cast<uint32_t>(in.logits.size());
  KernelRun run(policy);
  run.state = {.max_generated = UINT32_MAX,
               .seed_low = static_cast<uint32_t>(seed),
               .seed_high = static_cast<uint32_t>(seed >> 32)};
  run.state.ctx_len = UINT32_MAX;
  const TensorView pristine = run.input(in.logits);
  const TensorView logits = run.output(vocab * 4);
  std::vector<uint8_t> params(256);
  std::memcpy(params.data(), &in.params, sizeof(in.params));
  std::vector<uint32_t> bias(kMaxLogitBias * 2, kPoison);
  for (size_t i = 0; i < in.bias.size(); ++i) {
    bias[2 * i] = in.bias[i].first;
    bias[2 * i + 1] = std::bit_cast<uint32_t>(in.bias[i].second);
  }
  std::vector<uint32_t> counts = in.counts;
  counts.resize(vocab);
  Sample op{.logits = logits,
            .params = run.input(params),
            .bias = run.input(bias),
            .counts = run.inout(counts),
            .token = run.output(4),
            .vocab_size = vocab,
            .softcap = in.softcap,
            .logit_scale = in.logit_scale};
  const TensorView ring = run.output(kTokenRing * 4);
  const Step step{.token = op.token,
                  .tokens = run.output(4),
                  .ring = ring,
                  .counts = op.counts,
                  .recent = run.inout(std::vector<uint32_t>(kPenaltyRing, kNoToken)),
                  .vocab_size = vocab};
  const bool recorded = run.record([&](Context& ctx) -> Result<void> {
    DP_CHECK(ctx.plan.copy(pristine.sub(0, vocab * 4), logits.sub(0, vocab * 4), "test"));
    DP_CHECK(record(ctx, op));
    return record(ctx, step);
  });
  if (!recorded) return {};
  run.replay(1, draws);
  return run.read<uint32_t>(ring, draws);
}

// Compares draw by draw. Device and oracle round exp() differently, which moves the borders between tokens by
// parts in 10^7 of the whole: a draw that falls there may differ, which one in 500 may.
void expect_same_tokens(const SampleInput& in, uint32_t draws) {
  const SampleOracle oracle = sample_oracle(in);
  const bool penalised =
      in.params.repeat_penalty != 1 || in.params.presence_penalty != 0 || in.params.frequency_penalty != 0;
  for_each_variant("sample", sample_variants(), [&](const Policy& policy) {
    const std::vector<uint32_t> got = sample_on_device(in, draws, policy);
    ASSERT_EQ(got.size(), draws);
    SampleInput now = in;
    now.counts.resize(in.logits.size());
    uint32_t different = 0;
    for (uint32_t i = 0; i < draws; ++i) {
      const uint32_t random = random_word(kSeed, i);
      const uint32_t want = penalised ? sample_oracle(now).draw(random) : oracle.draw(random);
      if (got[i] != want && ++different > draws / 500) {
        FAIL() << "draw " << i << ": token " << got[i] << " instead of " << want;
      }
      ASSERT_LT(got[i], in.logits.size());
      ++now.counts[got[i]];  // what the step kernel did on the device
      if (i >= kPenaltyRing) --now.counts[got[i - kPenaltyRing]];
    }
  });
}

SampleInput random_input(uint32_t vocab, uint64_t seed, SampleParams params) {
  SampleInput in{.logits = random_floats(vocab, seed, 3), .params = params};
  for (float& l : in.logits) l = std::fmin(l, 12.0f);  // else the outliers take it all
  return in;
}

TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  constexpr uint32_t f = 0xFFFFFFFF;
  EXPECT_EQ(philox4x32_10({f, f, f, f}, {f, f}),
            (std::array<uint32_t, 4>{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
}

struct Case {
  uint32_t vocab;
  SampleParams params;
  uint32_t draws = 500;
  float softcap = 0;
  float logit_scale = 1;
};
class SampleTest : public ::testing::TestWithParam<Case> {};

TEST_P(SampleTest, DrawsTheOraclesToken) {
  SampleInput in = random_input(GetParam().vocab, 5 + GetParam().vocab, GetParam().params);
  in.softcap = GetParam().softcap;
  in.logit_scale = GetParam().logit_scale;
  expect_same_tokens(in, GetParam().draws);
}

constexpr SampleParams kOff{.temperature = 1, .top_p = 1, .min_p = 0, .top_k = 0};
SampleParams with(auto change) {
  SampleParams params = kOff;
  change(params);
  return params;
}
INSTANTIATE_TEST_SUITE_P(
    Settings, SampleTest,
    ::testing::Values(
        Case{1, kOff}, Case{2, kOff}, Case{1000, kOff}, Case{5003, kOff, 200},
        Case{1000, SampleParams{}},  // the defaults
        Case{5003, with([](auto& p) { p.top_k = 1; })}, Case{5003, with([](auto& p) { p.top_k = 37; })},
        Case{5003, with([](auto& p) { p.top_k = 3000; }), 200},
        Case{1025, with([](auto& p) { p.top_k = 1025; })},
        Case{1025, with([](auto& p) { p.top_k = UINT32_MAX; })},
        Case{5003, with([](auto& p) { p.top_p = 0.9f; })}, Case{5003, with([](auto& p) { p.top_p = 1e-9f; })},
        Case{5003, with([](auto& p) { p.top_p = 0; })},
        Case{5003, with([](auto& p) { p.top_p = 0.5f, p.top_k = 50, p.temperature = 4; })},
        Case{5003, with([](auto& p) { p.top_p = 0.99f, p.top_k = 1025, p.temperature = 9; })},
        Case{5003, with([](auto& p) { p.min_p = 0.05f, p.temperature = 3; })},
        Case{1000, with([](auto& p) { p.min_p = 1; })},
        Case{1000, with([](auto& p) { p.temperature = 1e-30f; })},
        Case{1000, with([](auto& p) { p.temperature = 0.1f; })},
        Case{1000, with([](auto& p) { p.temperature = 1e30f; })}, Case{3001, SampleParams{}, 500, 8.0f},
        Case{3001, SampleParams{}, 500, 0, 0.125f}, Case{151936, SampleParams{}, 20},
        Case{kMaxVocab, kOff, 4}, Case{700, with([](auto& p) { p.repeat_penalty = 1.3f; })},
        Case{700, with([](auto& p) { p.presence_penalty = 1, p.frequency_penalty = 0.7f; })},
        Case{700, with([](auto& p) { p.repeat_penalty = 1.1f, p.top_k = 40, p.top_p = 0.9f; })}));

TEST(SampleEdges, EqualLogitsAreCutByIdAndDrawnEvenly) {
  SampleInput in{.logits = std::vector<float>(3000, 0.25f), .params = kOff};
  in.params.top_k = 5;
  EXPECT_EQ(sample_oracle(in).kept, (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  expect_same_tokens(in, 500);
  in.params.top_k = 0;
  in.params.top_p = 0.5f;
  EXPECT_EQ(sample_oracle(in).kept.back(), 1499u);
  expect_same_tokens(in, 200);
}

TEST(SampleEdges, TiesAtTheCutStayByIdWhateverTheirSign) {
  SampleInput in{.logits = {0.0f, -0.0f, 1, 0.0f, -0.0f, -1}, .params = kOff};
  in.params.top_k = 3;
  in.params.temperature = 100;
  EXPECT_EQ(sample_oracle(in).kept, (std::vector<uint32_t>{2, 0, 1}));
  expect_same_tokens(in, 500);
}

TEST(SampleEdges, ExcludedTokensAreNeverDrawn) {
  SampleInput in = random_input(1500, 77, kOff);
  in.params.temperature = 1e30f;
  for (uint32_t id = 0; id < 1500; ++id) {
    if (id % 100 != 7) in.logits[id] = -kInf;
  }
  in.logits[8] = std::nanf("");
  in.bias = {{107, -kInf}, {207, -1e38f}, {8, 1e9f}};
  in.params.bias_count = 3;
  const SampleOracle oracle = sample_oracle(in);
  EXPECT_EQ(oracle.kept.size(), 13u);
  expect_same_tokens(in, 500);
  for_each_variant("sample", sample_variants(), [&](const Policy& policy) {
    const std::vector<uint32_t> got = sample_on_device(in, 500, policy);
    EXPECT_EQ(std::set<uint32_t>(got.begin(), got.end()),
              std::set<uint32_t>(oracle.kept.begin(), oracle.kept.end()));
  });
}

TEST(SampleEdges, NothingButExcludedTokensGivesAValidOne) {
  for_each_variant("sample", sample_variants(), [&](const Policy& policy) {
    for (const float l : {-kInf, std::nanf(""), kInf}) {
      const SampleInput in{.logits = std::vector<float>(300, l), .params = {}};
      for (uint32_t token : sample_on_device(in, 20, policy)) EXPECT_LT(token, 300u);
    }
  });
}

TEST(SampleEdges, AnInfiniteLogitWins) {
  SampleInput in = random_input(1500, 78, kOff);
  in.logits[1400] = kInf;
  for_each_variant("sample", sample_variants(), [&](const Policy& policy) {
    for (uint32_t token : sample_on_device(in, 20, policy)) EXPECT_EQ(token, 1400u);
  });
}

TEST(SampleEdges, BiasEntriesAddUpInOrder) {
  SampleInput in = random_input(1500, 79, kOff);
  in.bias = {{3, 9}, {1499, 11.5f}, {3, 2}, {5000, 100}};  // an id past the vocabulary is nobody's
  in.params.bias_count = 4;
  expect_same_tokens(in, 500);
}

TEST(SampleEdges, AFullBiasListIsRead) {
  SampleInput in = random_input(2000, 80, kOff);
  for (uint32_t i = 0; i < kMaxLogitBias; ++i) in.bias.emplace_back(i, i + 1 == kMaxLogitBias ? 20.0f : 0.5f);
  in.params.bias_count = kMaxLogitBias;
  expect_same_tokens(in, 100);
}

TEST(Sample, TheSameSeedGivesTheSameTokensAndAnotherOthers) {
  const SampleInput in = random_input(3000, 81, kOff);
  for_each_variant("sample", sample_variants(), [&](const Policy& policy) {
    const std::vector<uint32_t> first = sample_on_device(in, 200, policy, 42);
    EXPECT_EQ(sample_on_device(in, 200, policy, 42), first);
    EXPECT_NE(sample_on_device(in, 200, policy, 43), first);
    EXPECT_NE(sample_on_device(in, 200, policy, 42 + (1ull << 32)), first);
  });
}

// Chi-square over 4,000 draws of 16 tokens: 15 degrees of freedom, 44.3 is exceeded once in 10,000.
TEST(Sample, DrawsFollowTheSoftmax) {
  SampleInput in{.logits = {}, .params = kOff};
  for (int i = 0; i < 16; ++i) in.logits.push_back(static_cast<float>(i % 5) * 0.4f);
  in.params.temperature = 0.7f;
  double sum = 0;
  for (float l : in.logits) sum += std::exp(l / 0.7);
  for_each_variant("sample", sample_variants(), [&](const Policy& policy) {
    constexpr uint32_t kDraws = 4000;
    std::map<uint32_t, double> seen;
    for (uint32_t token : sample_on_device(in, kDraws, policy)) seen[token] += 1;
    double chi_square = 0;
    for (uint32_t id = 0; id < 16; ++id) {
      const double want = kDraws * std::exp(in.logits[id] / 0.7) / sum;
      chi_square += (seen[id] - want) * (seen[id] - want) / want;
    }
    EXPECT_LT(chi_square, 44.3);
  });
}

}  // namespace
}  // namespace doppler::kernels::testing
