// layer_norm against double precision, with and without a bias, in all forms. The rows are far from zero.
#include "kernels/layer_norm/layer_norm.h"

#include <cmath>

#include "kernels/testing/f16_check.h"
#include "kernels/testing/kernel_harness.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

struct Case {
  uint32_t n;
  bool has_bias, forms;
  uint32_t rows = 3;
};
class LayerNormTest : public ::testing::TestWithParam<Case> {};

TEST_P(LayerNormTest, EveryVariantMatchesTheOracle) {
  const Case c = GetParam();
  constexpr double kEps = 1e-6;
  std::vector<float> x = random_floats(size_t{c.rows} * c.n, 1);
  for (float& value : x) value += 3;
  const std::vector<float> weights = random_floats((c.has_bias ? 2ul : 1ul) * c.n, 2);
  std::vector<double> want;
  for (uint32_t row = 0; row < c.rows; ++row) {
    const auto values = std::span(x).subspan(size_t{row} * c.n, c.n);
    double mean = 0, squares = 0;
    for (const float value : values) mean += double{value} / c.n;
    for (const float value : values) squares += (value - mean) * (value - mean) / c.n;
    for (uint32_t i = 0; i < c.n; ++i) {
      const double bias = c.has_bias ? weights[c.n + i] : 0.0f;
      want.push_back((values[i] - mean) / std::sqrt(squares + kEps) * weights[i] + bias);
    }
  }
  for_each_variant("layer_norm", layer_norm_variants(), [&](const Policy& policy) {
    KernelRun run(policy, c.rows);
    LayerNorm op{.x = run.input(x),
                 .weights = run.input(weights),
                 .y = {.f32 = run.output(uint64_t{c.rows} * c.n * 4)},
                 .n = c.n,
                 .has_bias = c.has_bias,
                 .eps = static_cast<float>(kEps)};
    if (c.forms) op.y.q8 = run.output(q8_bytes(c.rows, c.n));
    if (c.forms) op.y.f16 = run.output(f16_bytes(c.rows, c.n));
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(c.rows);
    const std::vector<float> got = run.read<float>(op.y.f32, uint64_t{c.rows} * c.n);
    EXPECT_LT(rel_l2(got, want), 1e-6);
    if (!c.forms) return;
    expect_f16(run.read<uint16_t>(op.y.f16, f16_bytes(c.rows, c.n) / 2), got, c.rows, c.n);
    expect_q8(run.read<uint8_t>(op.y.q8, q8_bytes(c.rows, c.n)), got, c.rows, c.rows, c.n);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerNormTest,
                         ::testing::Values(Case{1056, true, true}, Case{75, false, false},
                                           Case{1152, true, true, 70}, Case{301, true, false, 70}));

}  // namespace
}  // namespace doppler::kernels::testing
