// Tests expert_norm against double precision: both forms of the norm, without a shared expert and beside one with and
// without a gate.
#include <bit>
#include <cmath>

#include "kernels/moe/variants.h"
#include "kernels/testing/kernel_harness.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

struct Case {
  uint32_t n, n_used;
  bool shared = false, gate = false, q8 = false, f32 = true;
};
class ExpertNormTest : public ::testing::TestWithParam<Case> {};

TEST_P(ExpertNormTest, MatchesTheOracle) {
  const Case c = GetParam();
  constexpr uint32_t kMaxRows = 3, kRows = 2;
  constexpr float kEps = 1e-5f;
  const std::vector<float> x = random_floats(size_t{kMaxRows} * c.n_used * c.n, 41);
  const std::vector<float> slot_weights = random_floats(size_t{kMaxRows} * c.n_used, 42);
  const std::vector<float> shared = random_floats(size_t{kMaxRows} * c.n, 43);
  const std::vector<float> gate = random_floats(kMaxRows, 44), weight = random_floats(c.n, 45);
  const std::vector<float> before = random_floats(size_t{kMaxRows} * c.n, 46);
  std::vector<uint32_t> routes(size_t{kMaxRows} * 2 * c.n_used);
  for (size_t i = 0; i < slot_weights.size(); ++i) {
    routes[i / c.n_used * 2 * c.n_used + c.n_used + i % c.n_used] = std::bit_cast<uint32_t>(slot_weights[i]);
  }
  for_each_variant("expert_norm", expert_norm_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    ExpertNorm op{.x = run.input(x),
                  .routes = {.view = run.input(routes), .n_experts = 8, .n_used = c.n_used},
                  .residual = run.inout(before),
                  .weight = run.input(weight),
                  .n = c.n,
                  .eps = kEps};
    if (c.shared) op.shared = run.input(shared);
    if (c.gate) op.shared_gate = run.input(gate);
    if (c.f32) op.y.f32 = run.output(before.size() * sizeof(float));
    if (c.q8) op.y.q8 = run.output(q8_bytes(kMaxRows, c.n));
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kRows);
    std::vector<double> sums, want;
    for (uint32_t row = 0; row < kRows; ++row) {
      double squares = 0;
      for (uint32_t i = row * c.n; i < (row + 1) * c.n; ++i) {
        double sum = before[i];
        for (uint32_t s = 0; s < c.n_used; ++s) {
          sum += double{slot_weights[row * c.n_used + s]} * x[(row * c.n_used + s) * c.n + i % c.n];
        }
        if (c.shared) sum += c.gate ? shared[i] / (1 + std::exp(-double{gate[row]})) : shared[i];
        sums.push_back(sum);
        squares += sum * sum;
      }
      for (uint32_t i = 0; i < c.n; ++i) {
        want.push_back(sums[row * c.n + i] / std::sqrt(squares / c.n + kEps) * weight[i]);
      }
    }
    EXPECT_LT(rel_l2(run.read<float>(op.residual, sums.size()), sums), 1e-6);
    EXPECT_EQ(run.read<float>(op.residual, before.size()).back(), before.back()) << "row past the last";
    if (c.f32) {
      EXPECT_LT(rel_l2(run.read<float>(op.y.f32, want.size()), want), 1e-6);
    }
    if (c.q8) {
      const std::vector<float> normed(want.begin(), want.end());
      expect_q8(run.read<uint8_t>(op.y.q8, q8_bytes(kMaxRows, c.n)), normed, kMaxRows, kRows, c.n);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, ExpertNormTest,
                         ::testing::Values(Case{68, 3}, Case{160, 8, true, false, true, false},
                                           Case{4128, 2, true, true, true, true}));

}  // namespace
}  // namespace doppler::kernels::testing
