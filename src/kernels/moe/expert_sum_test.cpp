// Tests expert_sum against double precision: without a shared expert and beside one with and without a gate.
#include <bit>
#include <cmath>

#include "kernels/moe/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

struct Case {
  uint32_t n, n_used;
  bool shared = false, gate = false;
};
class ExpertSumTest : public ::testing::TestWithParam<Case> {};

TEST_P(ExpertSumTest, MatchesTheOracle) {
  const Case c = GetParam();
  constexpr uint32_t kMaxRows = 3, kRows = 2;
  const std::vector<float> x = random_floats(size_t{kMaxRows} * c.n_used * c.n, 21);
  const std::vector<float> weights = random_floats(size_t{kMaxRows} * c.n_used, 22);
  const std::vector<float> shared = random_floats(size_t{kMaxRows} * c.n, 23);
  const std::vector<float> gate = random_floats(kMaxRows, 24),
                           before = random_floats(size_t{kMaxRows} * c.n, 25);
  std::vector<uint32_t> routes(size_t{kMaxRows} * 2 * c.n_used);
  for (size_t i = 0; i < weights.size(); ++i) {
    routes[i / c.n_used * 2 * c.n_used + c.n_used + i % c.n_used] = std::bit_cast<uint32_t>(weights[i]);
  }
  for_each_variant("expert_sum", expert_sum_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    ExpertSum op{.x = run.input(x),
                 .routes = {.view = run.input(routes), .n_experts = 8, .n_used = c.n_used},
                 .y = run.inout(before),
                 .n = c.n};
    if (c.shared) op.shared = run.input(shared);
    if (c.gate) op.shared_gate = run.input(gate);
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kRows);
    std::vector<double> want;
    for (uint32_t i = 0; i < kRows * c.n; ++i) {
      const uint32_t row = i / c.n;
      double sum = 0;
      for (uint32_t s = 0; s < c.n_used; ++s) {
        sum += double{weights[row * c.n_used + s]} * x[(row * c.n_used + s) * c.n + i % c.n];
      }
      if (c.shared) sum += c.gate ? shared[i] / (1 + std::exp(-double{gate[row]})) : shared[i];
      want.push_back(sum);
    }
    EXPECT_LT(rel_l2(run.read<float>(op.y, want.size()), want), 1e-6);
    EXPECT_EQ(run.read<float>(op.y, before.size()).back(), before.back()) << "row past the last";
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, ExpertSumTest,
                         ::testing::Values(Case{65, 2}, Case{130, 8, true}, Case{7, 1, true, true}));

}  // namespace
}  // namespace doppler::kernels::testing
