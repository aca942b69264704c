// Tests the sampling chain against sample_oracle: the same token for the same random number through every combination
// of filters, the kept set and the frequencies, penalties as tokens come, and values that break naive code.
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>

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

// A plan that samples from the same logits again and again, the counter going up. Made once for each
// vocabulary, softcap and scale: everything else is parameters, and compiling takes longer than drawing.
class Sampler {
 public:
  Sampler(const Policy& policy, uint32_t vocab, float softcap, float logit_scale)
      : vocab_(vocab), run_(policy) {
    const Sample op{.logits = logits_,
                    .params = params_,
                    .bias = bias_,
                    .counts = counts_,
                    .token = token_,
                    .vocab_size = vocab,
                    .softcap = softcap,
                    .logit_scale = logit_scale};
    const Step step{
        .token = token_, .ring = ring_, .counts = counts_, .recent = recent_, .vocab_size = vocab};
    ready_ = run_.record([&](Context& ctx) -> Result<void> {
      DP_CHECK(ctx.plan.copy(pristine_.sub(0, vocab * 4), logits_.sub(0, vocab * 4), "test"));
      DP_CHECK(record(ctx, op));
      return record(ctx, step);
    });
  }

  std::vector<uint32_t> draw(const SampleInput& in, uint32_t draws, uint64_t seed) {
    if (!ready_) return {};
    run_.state = {.ctx_len = UINT32_MAX,
                  .max_generated = UINT32_MAX,
                  .seed_low = static_cast<uint32_t>(seed),
                  .seed_high = static_cast<uint32_t>(seed >> 32)};
    run_.overwrite(pristine_, in.logits);
    run_.overwrite(params_, std::vector<SampleParams>{in.params});
    std::vector<uint32_t> bias(kMaxLogitBias * 2, kPoison);
    for (size_t i = 0; i < in.bias.size(); ++i) {
      bias[2 * i] = in.bias[i].first;
      bias[2 * i + 1] = std::bit_cast<uint32_t>(in.bias[i].second);
    }
    run_.overwrite(bias_, bias);
    std::vector<uint32_t> counts = in.counts;
    counts.resize(vocab_);
    run_.overwrite(counts_, counts);
    run_.overwrite(recent_, std::vector<uint32_t>(kPenaltyRing, kNoToken));
    run_.replay(1, draws);
    return run_.read<uint32_t>(ring_, draws);
  }

 private:
  uint32_t vocab_;
  KernelRun run_;
  TensorView pristine_ = run_.input(std::vector<float>(vocab_));
  TensorView logits_ = run_.output(vocab_ * 4);
  TensorView params_ = run_.input(std::vector<uint8_t>(256));
  TensorView bias_ = run_.input(std::vector<uint32_t>(kMaxLogitBias * 2));
  TensorView counts_ = run_.inout(std::vector<uint32_t>(vocab_));
  TensorView recent_ = run_.inout(std::vector<uint32_t>(kPenaltyRing));
  TensorView token_ = run_.output(4);
  TensorView ring_ = run_.output(kTokenRing * 4);
  bool ready_ = false;
};

std::vector<uint32_t> sample_on_device(const SampleInput& in, uint32_t draws, const Policy& policy,
                                       uint64_t seed = kSeed) {
  using Key = std::tuple<std::string, size_t, float, float>;
  device();  // made before the samplers, so that it outlives them
  static std::map<Key, std::unique_ptr<Sampler>> samplers;
  auto& sampler = samplers[{policy.forced.at("sample"), in.logits.size(), in.softcap, in.logit_scale}];
  if (!sampler) {
    sampler = std::make_unique<Sampler>(policy, static_cast<uint32_t>(in.logits.size()), in.softcap,
                                        in.logit_scale);
  }
  return sampler->draw(in, draws, seed);
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
        Case{1, kOff}, Case{40, kOff}, Case{5003, kOff}, Case{5003, kOff, 200},
        Case{5003, SampleParams{}},  // the defaults
        Case{5003, with([](auto& p) { p.top_k = 1; })}, Case{5003, with([](auto& p) { p.top_k = 37; })},
        Case{5003, with([](auto& p) { p.top_k = 3000; }), 200},
        Case{1025, with([](auto& p) { p.top_k = 1025; })},
        Case{1025, with([](auto& p) { p.top_k = UINT32_MAX; })},
        Case{5003, with([](auto& p) { p.top_p = 0.9f; })}, Case{5003, with([](auto& p) { p.top_p = 1e-9f; })},
        Case{5003, with([](auto& p) { p.top_p = 0; })},
        Case{5003, with([](auto& p) { p.top_p = 0.5f, p.top_k = 50, p.temperature = 4; })},
        Case{5003, with([](auto& p) { p.top_p = 0.99f, p.top_k = 1025, p.temperature = 9; })},
        Case{5003, with([](auto& p) { p.min_p = 0.05f, p.temperature = 3; })},
        Case{5003, with([](auto& p) { p.min_p = 1; })},
        Case{5003, with([](auto& p) { p.temperature = 1e-30f; })},
        Case{5003, with([](auto& p) { p.temperature = 0.1f; })},
        Case{5003, with([](auto& p) { p.temperature = 1e30f; })}, Case{1025, SampleParams{}, 500, 8.0f},
        Case{1025, SampleParams{}, 500, 0, 0.125f}, Case{kMaxVocab, SampleParams{}, 4},
        Case{kMaxVocab, kOff, 4}, Case{1025, with([](auto& p) { p.repeat_penalty = 1.3f; })},
        Case{1025, with([](auto& p) { p.presence_penalty = 1, p.frequency_penalty = 0.7f; })},
        Case{1025, with([](auto& p) { p.repeat_penalty = 1.1f, p.top_k = 40, p.top_p = 0.9f; })}));

TEST(SampleEdges, EqualLogitsAreCutByIdAndDrawnEvenly) {
  SampleInput in{.logits = std::vector<float>(5003, 0.25f), .params = kOff};
  in.params.top_k = 5;
  EXPECT_EQ(sample_oracle(in).kept, (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  expect_same_tokens(in, 500);
  in.params.top_k = 0;
  in.params.top_p = 0.5f;
  EXPECT_EQ(sample_oracle(in).kept.back(), 2501u);
  expect_same_tokens(in, 200);
  in.logits.resize(kMaxVocab, 0.25f);  // all bits of the ids
  EXPECT_EQ(sample_oracle(in).kept.back(), kMaxVocab / 2 - 1);
  expect_same_tokens(in, 4);
}

TEST(SampleEdges, TiesAtTheCutStayByIdWhateverTheirSign) {
  SampleInput in{.logits = {0.0f, -0.0f, 1, 0.0f, -0.0f, -1}, .params = kOff};
  in.logits.resize(40, -kInf);
  in.params.top_k = 3;
  in.params.temperature = 100;
  EXPECT_EQ(sample_oracle(in).kept, (std::vector<uint32_t>{2, 0, 1}));
  expect_same_tokens(in, 500);
}

TEST(SampleEdges, ExcludedTokensAreNeverDrawn) {
  SampleInput in = random_input(5003, 77, kOff);
  in.params.temperature = 1e30f;
  for (uint32_t id = 0; id < 5003; ++id) {
    if (id % 350 != 7) in.logits[id] = -kInf;
  }
  in.logits[8] = std::nanf("");
  in.bias = {{357, -kInf}, {707, -1e38f}, {8, 1e9f}};
  in.params.bias_count = 3;
  const SampleOracle oracle = sample_oracle(in);
  EXPECT_EQ(oracle.kept.size(), 13u);  // 15 were spared; biases exclude two
  expect_same_tokens(in, 500);
  for_each_variant("sample", sample_variants(), [&](const Policy& policy) {
    const std::vector<uint32_t> got = sample_on_device(in, 500, policy);
    EXPECT_EQ(std::set<uint32_t>(got.begin(), got.end()),
              std::set<uint32_t>(oracle.kept.begin(), oracle.kept.end()));
  });
}

TEST(SampleEdges, BrokenLogitsGiveNoToken) {
  for_each_variant("sample", sample_variants(), [&](const Policy& policy) {
    for (const float l : {-kInf, std::nanf(""), kInf}) {
      const SampleInput in{.logits = std::vector<float>(1025, l), .params = {}};
      for (uint32_t token : sample_on_device(in, 20, policy)) EXPECT_EQ(token, kNotFinite);
    }
    SampleInput in = random_input(5003, 78, kOff);
    in.logits[1400] = kInf;
    for (uint32_t token : sample_on_device(in, 20, policy)) EXPECT_EQ(token, kNotFinite);
    in.logits[1400] = 1;
    in.bias = {{1400, kInf}};
    in.params.bias_count = 1;
    for (uint32_t token : sample_on_device(in, 20, policy)) EXPECT_EQ(token, 1400u);
  });
}

TEST(SampleEdges, BiasEntriesAddUpInOrder) {
  SampleInput in = random_input(5003, 79, kOff);
  in.bias = {{3, 9}, {5002, 11.5f}, {3, 2}, {5003, 100}};  // an id past the vocabulary belongs to no token
  in.params.bias_count = 4;
  expect_same_tokens(in, 500);
}

TEST(SampleEdges, AFullBiasListIsRead) {
  SampleInput in = random_input(5003, 80, kOff);
  for (uint32_t i = 0; i < kMaxLogitBias; ++i) in.bias.emplace_back(i, i + 1 == kMaxLogitBias ? 20.0f : 0.5f);
  in.params.bias_count = kMaxLogitBias;
  expect_same_tokens(in, 20);
}

TEST(Sample, TheSameSeedGivesTheSameTokensAndAnotherOthers) {
  const SampleInput in = random_input(5003, 81, kOff);
  for_each_variant("sample", sample_variants(), [&](const Policy& policy) {
    const std::vector<uint32_t> first = sample_on_device(in, 200, policy, 42);
    EXPECT_EQ(sample_on_device(in, 200, policy, 42), first);
    EXPECT_NE(sample_on_device(in, 200, policy, 43), first);
    EXPECT_NE(sample_on_device(in, 200, policy, 42 + (1ull << 32)), first);
  });
}

// Chi-square over 4,000 draws of 6 tokens (of 40, as compiled for other tests): 5 degrees of freedom, 25.7 is exceeded
// once in 10,000.
TEST(Sample, DrawsFollowTheSoftmax) {
  SampleInput in{.logits = {}, .params = kOff};
  for (int i = 0; i < 6; ++i) in.logits.push_back(static_cast<float>(i) * 0.4f);
  in.logits.resize(40, -kInf);
  in.params.temperature = 0.7f;
  double sum = 0;
  for (uint32_t id = 0; id < 6; ++id) sum += std::exp(in.logits[id] / 0.7);
  for_each_variant("sample", sample_variants(), [&](const Policy& policy) {
    constexpr uint32_t kDraws = 4000;
    std::map<uint32_t, double> seen;
    for (uint32_t token : sample_on_device(in, kDraws, policy)) seen[token] += 1;
    double chi_square = 0;
    for (uint32_t id = 0; id < 6; ++id) {
      const double want = kDraws * std::exp(in.logits[id] / 0.7) / sum;
      chi_square += (seen[id] - want) * (seen[id] - want) / want;
    }
    EXPECT_LT(chi_square, 25.7);
  });
}

}  // namespace
}  // namespace doppler::kernels::testing
