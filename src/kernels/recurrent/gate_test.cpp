// gated_norm and output_gate against double precision, in all forms.
#include <cmath>

#include "kernels/recurrent/variants.h"
#include "kernels/testing/f16_check.h"
#include "kernels/testing/kernel_harness.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kRowCount = 3, kStrideMore = 5, kColumn = 2;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct NormCase {
  uint32_t n, group;
  bool gate_first, shares_weight, forms;
};
class GatedNormTest : public ::testing::TestWithParam<NormCase> {};

TEST_P(GatedNormTest, EveryVariantMatchesTheOracle) {
  const NormCase c = GetParam();
  const uint32_t stride = c.n + kStrideMore;
  const std::vector<float> x = random_floats(size_t{kRowCount} * c.n, 1),
                           z = random_floats(size_t{kRowCount} * stride, 2),
                           weight = random_floats(c.shares_weight ? c.group : c.n, 3);
  std::vector<double> want;
  for (uint32_t row = 0; row < kRowCount; ++row) {
    for (uint32_t first = 0; first < c.n; first += c.group) {
      std::vector<double> gates, values;
      double squares = 0;
      for (uint32_t i = first; i < first + c.group; ++i) {
        const double gate = z[size_t{row} * stride + kColumn + i];
        gates.push_back(gate * sigmoid(gate));
        values.push_back(x[size_t{row} * c.n + i] * (c.gate_first ? gates.back() : 1));
        squares += values.back() * values.back();
      }
      const double scale = 1 / std::sqrt(squares / c.group + 1e-6);
      for (uint32_t i = 0; i < c.group; ++i) {
        want.push_back(values[i] * scale * weight[c.shares_weight ? i : first + i] *
                       (c.gate_first ? 1 : gates[i]));
      }
    }
  }
  for_each_variant("gated_norm", gated_norm_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kRowCount);
    const TensorView y = run.output(uint64_t{kRowCount} * c.n * 4);
    GatedNorm op{.x = run.input(x),
                 .gates = run.input(z),
                 .gates_stride = stride,
                 .gate_column = kColumn,
                 .weight = run.input(weight),
                 .y = {.f32 = y},
                 .n = c.n,
                 .group = c.group,
                 .shares_weight = c.shares_weight,
                 .gate_first = c.gate_first,
                 .eps = 1e-6f};
    if (c.forms) op.y.q8 = run.output(q8_bytes(kRowCount, c.n));
    if (c.forms) op.y.f16 = run.output(f16_bytes(kRowCount, c.n));
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kRowCount);
    const std::vector<float> got = run.read<float>(y, uint64_t{kRowCount} * c.n);
    EXPECT_LT(rel_l2(got, want), 1e-6);
    if (c.forms) expect_f16(run.read<uint16_t>(op.y.f16, f16_bytes(kRowCount, c.n) / 2), got, kRowCount, c.n);
    if (c.forms)
      expect_q8(run.read<uint8_t>(op.y.q8, q8_bytes(kRowCount, c.n)), got, kRowCount, kRowCount, c.n);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, GatedNormTest,
                         ::testing::Values(NormCase{128, 32, false, true, true},
                                           NormCase{108, 36, true, false, false}));

TEST(OutputGate, MatchesTheOracle) {
  constexpr uint32_t kN = 96, kStride = kN + kStrideMore;
  const std::vector<float> x = random_floats(kRowCount * kN, 1),
                           z = random_floats(kRowCount * kStride, 2, 4.0f);
  std::vector<double> want;
  for (uint32_t i = 0; i < kRowCount * kN; ++i)
    want.push_back(x[i] * sigmoid(z[i / kN * kStride + kColumn + i % kN]));
  for_each_variant("output_gate", output_gate_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kRowCount);
    OutputGate op{.x = run.input(x),
                  .gates = run.input(z),
                  .gates_stride = kStride,
                  .gate_column = kColumn,
                  .y = {.f32 = run.output(kRowCount * kN * 4), .q8 = run.output(q8_bytes(kRowCount, kN))},
                  .n = kN};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kRowCount);
    const std::vector<float> got = run.read<float>(op.y.f32, kRowCount * kN);
    EXPECT_LT(rel_l2(got, want), 1e-6);
    expect_q8(run.read<uint8_t>(op.y.q8, q8_bytes(kRowCount, kN)), got, kRowCount, kRowCount, kN);
  });
}

}  // namespace
}  // namespace doppler::kernels::testing
