// route against double precision: every way to score, biases, groups and scales; equal choices by the lower id.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "kernels/moe/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kMaxRows = 3, kRows = 2;

struct Case {
  uint32_t n_experts, n_used;
  Route op;  // without views
  bool bias = false, scales = false;
};

struct Chosen {
  std::vector<uint32_t> ids;
  std::vector<double> weights;
};

Chosen oracle(const Case& c, std::span<const float> logits, std::span<const float> bias,
              std::span<const float> scales) {
  const uint32_t n = c.n_experts;
  std::vector<double> score(logits.begin(), logits.end());
  if (c.op.score == RouterScore::kSoftmax) {
    double sum = 0;
    for (double& s : score) sum += s = std::exp(s);
    for (double& s : score) s /= sum;
  } else if (c.op.score == RouterScore::kSigmoid) {
    for (double& s : score) s = 1 / (1 + std::exp(-s));
  }
  std::vector<double> choice = score;
  for (uint32_t e = 0; c.bias && e < n; ++e) choice[e] += bias[e];
  const uint32_t groups = c.op.n_groups, group = n / groups;
  std::vector<std::pair<double, uint32_t>> best(groups);
  for (uint32_t g = 0; g < groups; ++g) {
    std::vector<double> own(choice.begin() + g * group, choice.begin() + (g + 1) * group);
    std::ranges::sort(own, std::greater());
    best[g] = {-(c.op.group_score == GroupScore::kSumOfTwo ? own[0] + own[1] : own[0]), g};
  }
  std::ranges::sort(best);
  for (uint32_t g = c.op.groups_used; g < groups; ++g) {
    std::fill_n(choice.begin() + best[g].second * group, group, -1e300);
  }
  Chosen out;
  out.ids.resize(n);
  std::iota(out.ids.begin(), out.ids.end(), 0u);
  std::ranges::stable_sort(out.ids, [&](uint32_t a, uint32_t b) { return choice[a] > choice[b]; });
  out.ids.resize(c.n_used);
  double sum = c.op.norm_epsilon;
  for (const uint32_t id : out.ids) {
    out.weights.push_back(c.op.score == RouterScore::kSoftmaxOfChosen ? std::exp(score[id]) : score[id]);
    sum += out.weights.back();
  }
  const bool divides = c.op.norm_weights || c.op.score == RouterScore::kSoftmaxOfChosen;
  for (double& w : out.weights) w = (divides ? w / sum : w) * c.op.weight_scale;
  for (uint32_t i = 0; c.scales && i < c.n_used; ++i) out.weights[i] *= scales[out.ids[i]];
  return out;
}

class RouteTest : public ::testing::TestWithParam<Case> {};

TEST_P(RouteTest, MatchesTheOracle) {
  const Case& c = GetParam();
  std::vector<float> logits = random_floats(size_t{kMaxRows} * c.n_experts, 11);
  for (float& logit : logits) logit = std::clamp(logit, -8.0f, 8.0f);
  const std::vector<float> bias = random_floats(c.n_experts, 12, 0.1f),
                           scales = random_floats(c.n_experts, 13);
  for_each_variant("route", route_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    Route op = c.op;
    op.logits = run.input(logits);
    if (c.bias) op.bias = run.input(bias);
    if (c.scales) op.scales = run.input(scales);
    op.y = {.view = {}, .n_experts = c.n_experts, .n_used = c.n_used};
    op.y.view = run.output(op.y.bytes(kMaxRows));
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kRows);
    const std::vector<uint32_t> routes = run.read<uint32_t>(op.y.view, uint64_t{kMaxRows} * 2 * c.n_used);
    for (uint32_t row = 0; row < kRows; ++row) {
      const Chosen want = oracle(c, std::span(logits).subspan(row * c.n_experts, c.n_experts), bias, scales);
      const auto words = std::span(routes).subspan(row * 2 * c.n_used, 2 * c.n_used);
      std::vector<float> weights;
      for (uint32_t i = 0; i < c.n_used; ++i) {
        EXPECT_EQ(words[i], want.ids[i]) << "slot " << i << " of row " << row;
        weights.push_back(std::bit_cast<float>(words[c.n_used + i]));
      }
      EXPECT_LT(rel_l2(weights, want.weights), 1e-5);
    }
    EXPECT_EQ(routes[kRows * 2 * c.n_used], kPoison) << "row past the last";
  });
}

using enum RouterScore;
INSTANTIATE_TEST_SUITE_P(
    Ways, RouteTest,
    ::testing::Values(
        Case{.n_experts = 8, .n_used = 2, .op = {.norm_weights = true}},                  // Mixtral
        Case{.n_experts = 9, .n_used = 3, .op = {.norm_weights = true}, .scales = true},  // Gemma 4
        Case{.n_experts = 513 - 1, .n_used = 10, .op = {}},  // Qwen 2's way, of the most experts
        Case{.n_experts = 32, .n_used = 4, .op = {.score = kSoftmaxOfChosen}},  // gpt-oss
        Case{.n_experts = 7, .n_used = 3, .op = {.norm_weights = true, .norm_epsilon = 1e-12f}, .bias = true},
        Case{.n_experts = 12,  // GLM 4.5
             .n_used = 4,
             .op = {.score = kSigmoid,
                    .n_groups = 3,
                    .groups_used = 2,
                    .group_score = GroupScore::kSumOfTwo,
                    .norm_weights = true,
                    .norm_epsilon = 1e-20f,
                    .weight_scale = 2.5f},
             .bias = true},
        Case{.n_experts = 64, .n_used = 6, .op = {.n_groups = 8, .groups_used = 3}},  // DeepSeek V2
        Case{.n_experts = 512,                                                        // Nemotron 3 Super
             .n_used = 22,
             .op = {.score = kSigmoid, .norm_weights = true, .norm_epsilon = 1e-20f, .weight_scale = 5},
             .bias = true},
        Case{.n_experts = 33, .n_used = 32, .op = {}}));  // the most used

// Ids are each chosen once whatever the logits are, so that every slot is written.
TEST(Route, EqualAndStrangeLogitsChooseTheLowestIds) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  KernelRun run;
  Route op{.logits = run.input(std::vector<float>{1, 2, 2, 2, kNan, kNan}),
           .y = {.view = run.output(32), .n_experts = 6, .n_used = 4}};
  op.score = kSoftmaxOfChosen;
  ASSERT_TRUE(run.record([&](Context& ctx) { return record(ctx, op); }));
  run.replay();
  const std::vector<uint32_t> ids = run.read<uint32_t>(op.y.view, 4);
  EXPECT_EQ(ids, (std::vector<uint32_t>{4, 5, 1, 2}));
}

TEST(Route, RefusesWhatItCannotChoose) {
  KernelRun run;
  Route op{.logits = run.input(std::vector<float>(1024, 0.0f)),
           .y = {.view = run.output(256), .n_experts = 1024, .n_used = 4}};
  EXPECT_FALSE(run.try_record([&](Context& ctx) { return record(ctx, op); }));
  op.y = {.view = run.output(512), .n_experts = 64, .n_used = 33};
  EXPECT_FALSE(run.try_record([&](Context& ctx) { return record(ctx, op); }));
  op.y.n_used = 4;
  op.y.n_experts = 9;
  op.n_groups = 2;
  EXPECT_FALSE(run.try_record([&](Context& ctx) { return record(ctx, op); }));
}

}  // namespace
}  // namespace doppler::kernels::testing
