// glu against double precision, for each activation, on ordinary values with outliers and on both far tails.
#include <cmath>

#include "kernels/glu/variants.h"
#include "kernels/testing/f16_check.h"
#include "kernels/testing/kernel_harness.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

double oracle(ActivationFn activate, double x) {
  switch (activate) {
    case ActivationFn::kSilu:
      return x / (1 + std::exp(-x));
    case ActivationFn::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case ActivationFn::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    default:  // no gate has it
      return x;
  }
}

struct Case {
  ActivationFn activate;
  uint32_t n;
  uint32_t rows;  // of 3
  bool q8 = false;
};
class GluTest : public ::testing::TestWithParam<Case> {};

TEST_P(GluTest, EveryVariantMatchesTheOracle) {
  const auto [activate, n, rows, q8] = GetParam();
  constexpr uint32_t kMaxRows = 3;
  const std::vector<float> gate_up = random_floats(size_t{kMaxRows} * 2 * n, 7);
  for_each_variant("glu", glu_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    const TensorView y_view = run.output(uint64_t{kMaxRows} * n * 4);
    Glu op{.gate_up = run.input(gate_up), .y = {.f32 = y_view}, .n = n, .activate = activate};
    if (q8) op.y.q8 = run.output(q8_bytes(kMaxRows, n));
    if (q8) op.y.f16 = run.output(f16_bytes(kMaxRows, n));
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(rows);
    std::vector<double> want;
    for (uint32_t row = 0; row < rows; ++row) {
      const float* gates = &gate_up[size_t{row} * 2 * n];
      for (uint32_t i = 0; i < n; ++i) want.push_back(oracle(activate, gates[i]) * gates[n + i]);
    }
    const std::vector<float> y = run.read<float>(y_view, uint64_t{rows} * n);
    EXPECT_LT(rel_l2(y, want), 1e-6);
    if (q8) expect_f16(run.read<uint16_t>(op.y.f16, f16_bytes(kMaxRows, n) / 2), y, rows, n);
    if (q8) expect_q8(run.read<uint8_t>(op.y.q8, q8_bytes(kMaxRows, n)), y, kMaxRows, rows, n);
    const std::vector<uint32_t> all = run.read<uint32_t>(y_view, uint64_t{kMaxRows} * n);
    for (size_t i = size_t{rows} * n; i < all.size(); ++i) ASSERT_EQ(all[i], kPoison) << "row past the last";
  });
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, GluTest,
    ::testing::Values(Case{ActivationFn::kSilu, 1, 1}, Case{ActivationFn::kSilu, 1021, 2},
                      Case{ActivationFn::kSilu, 2080, 3, true}, Case{ActivationFn::kGeluTanh, 7, 3},
                      Case{ActivationFn::kGeluTanh, 512, 2, true}, Case{ActivationFn::kGeluErf, 257, 2},
                      Case{ActivationFn::kGeluErf, 96, 1, true}));

// Each value on its own, since a sum of squares hides the small ones.
TEST(Glu, IsAccurateOverTheWholeRange) {
  std::vector<float> gate_up;
  for (int i = -4000; i <= 4000; ++i) gate_up.push_back(static_cast<float>(i) / 400);  // -10 to 10
  const auto n = static_cast<uint32_t>(gate_up.size());
  gate_up.resize(2 * n, 1.0f);
  for (ActivationFn activate : {ActivationFn::kSilu, ActivationFn::kGeluTanh, ActivationFn::kGeluErf}) {
    KernelRun run;
    const TensorView y_view = run.output(n * 4);
    const Glu op{.gate_up = run.input(gate_up), .y = {.f32 = y_view}, .n = n, .activate = activate};
    ASSERT_TRUE(run.record([&](Context& ctx) { return record(ctx, op); }));
    run.replay();
    const std::vector<float> y = run.read<float>(y_view, n);
    for (uint32_t i = 0; i < n; ++i) {
      const double want = oracle(activate, gate_up[i]);
      ASSERT_NEAR(y[i], want, std::fabs(gate_up[i]) * 3e-7 + 1e-12) << "at " << gate_up[i];
    }
  }
}

TEST(Glu, HugeGatesDoNotOverflow) {
  const std::vector<float> gate_up = {1e30f, -1e30f, 3e9f, -3e9f, 200.0f, -200.0f, 1, 1, 1, 1, 1, 1};
  for (ActivationFn activate : {ActivationFn::kSilu, ActivationFn::kGeluTanh, ActivationFn::kGeluErf}) {
    KernelRun run;
    const TensorView y_view = run.output(6 * 4);
    const Glu op{.gate_up = run.input(gate_up), .y = {.f32 = y_view}, .n = 6, .activate = activate};
    ASSERT_TRUE(run.record([&](Context& ctx) { return record(ctx, op); }));
    run.replay();
    const std::vector<float> y = run.read<float>(y_view, 6);
    for (int i : {0, 2, 4}) EXPECT_FLOAT_EQ(y[i], gate_up[i]);
    // exp(-87) is the smallest the gate multiplies with: 1.6e-38 of the input.
    for (int i : {1, 3, 5}) EXPECT_NEAR(y[i], 0, std::fabs(gate_up[i]) * 2e-38);
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
