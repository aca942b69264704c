// Tests scale, xielu, activate, multiply, concat and sparsify against double precision. Rows after the last must not
// change.
#include <cmath>

#include "kernels/pointwise/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kMaxRows = 3, kRows = 2, kColumns = 1021;

// Replays `op` on x and compares the first rows with oracle(x).
template <class Op, class Oracle>
void expect_values(const Policy& policy, const std::vector<float>& x, Op op, KernelRun& run, double bound,
                   Oracle oracle) {
  op.x = run.inout(x);
  op.n = kColumns;
  if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
  run.replay(kRows);
  const std::vector<float> got = run.read<float>(op.x, x.size());
  std::vector<double> want;
  for (size_t i = 0; i < size_t{kRows} * kColumns; ++i) want.push_back(oracle(double{x[i]}));
  EXPECT_LT(rel_l2(std::span(got).first(want.size()), want), bound) << policy.name;
  for (size_t i = want.size(); i < x.size(); ++i) ASSERT_EQ(got[i], x[i]) << "row past the last";
}

std::vector<float> values() {
  std::vector<float> x = random_floats(size_t{kMaxRows} * kColumns, 3);
  for (size_t i = 0; i < x.size(); i += 7) x[i] *= 100;  // both far tails
  return x;
}

TEST(Scale, EveryVariantMatchesTheOracle) {
  for (const float softcap : {0.0f, 6.0f}) {
    for_each_variant("scale", scale_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      expect_values(policy, values(), Scale{.x = {}, .factor = 0.6f, .softcap = softcap}, run, 1e-6,
                    [&](double x) {
                      const double scaled = 0.6f * x;
                      return softcap == 0 ? scaled : softcap * std::tanh(scaled / softcap);
                    });
    });
  }
}

TEST(Xielu, EveryVariantMatchesTheOracle) {
  const std::vector<float> numbers = {0.8f, 1.3f, 0.4f, -1e-6f};
  const double p = numbers[0], n = numbers[1], b = numbers[2], e = numbers[3];
  for_each_variant("xielu", xielu_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    expect_values(policy, values(), Xielu{.x = {}, .numbers = run.input(numbers)}, run, 1e-6, [&](double x) {
      return x > 0 ? p * x * x + b * x : (std::expm1(std::min(x, e)) - x) * n + b * x;
    });
  });
}

TEST(Multiply, EveryVariantMatchesTheOracle) {
  constexpr uint32_t kN = 130, kStride = 300, kColumn = 40;
  const std::vector<float> x = random_floats(size_t{kMaxRows} * kStride, 1),
                           u = random_floats(size_t{kMaxRows} * kStride, 2);
  struct Case {
    ActivationFn activation;
    uint32_t u_stride, u_column;
    bool is_one;
  };
  for (const Case& c :
       {Case{ActivationFn::kGeluTanh, kStride, 7, false}, Case{ActivationFn::kRelu, kStride, 40, false},
        Case{ActivationFn::kNone, 0, 0, false}, Case{ActivationFn::kNone, 0, 0, true}}) {
    for_each_variant("multiply", multiply_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      const Multiply op{.x = {.buffer = run.input(x), .stride = kStride, .column = kColumn},
                        .u = {.buffer = run.input(u), .stride = c.u_stride, .column = c.u_column},
                        .y = run.output(uint64_t{kMaxRows} * kN * 4),
                        .n = kN,
                        .is_one = c.is_one,
                        .activation = c.activation};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(kRows);
      const std::vector<float> got = run.read<float>(op.y, uint64_t{kRows} * kN);
      std::vector<double> want;
      for (uint32_t i = 0; i < kRows * kN; ++i) {
        const uint32_t row = i / kN, column = i % kN;
        double value = x[row * kStride + kColumn + column];
        if (c.activation == ActivationFn::kGeluTanh) {
          value *= 0.5 * (1 + std::tanh(0.7978845608028654 * (value + 0.044715 * value * value * value)));
        }
        if (c.activation == ActivationFn::kRelu) value = std::max(value, 0.0);
        want.push_back(value * double{u[row * c.u_stride + c.u_column + (c.is_one ? 0 : column)]});
      }
      EXPECT_LT(rel_l2(got, want), 1e-6) << policy.name;
      const std::vector<uint32_t> all = run.read<uint32_t>(op.y, uint64_t{kMaxRows} * kN);
      for (size_t i = want.size(); i < all.size(); ++i) ASSERT_EQ(all[i], kPoison) << "row past the last";
    });
  }
}

TEST(Concat, EveryVariantPutsRowsBesideOneAnother) {
  constexpr uint32_t kN = 70, kM = 131, kStride = 300;
  const std::vector<float> x = random_floats(size_t{kMaxRows} * kStride, 1),
                           y = random_floats(size_t{kMaxRows} * kStride, 2);
  for (const uint32_t y_stride : {kStride, 0u}) {
    for_each_variant("concat", concat_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      const Concat op{.x = {.buffer = run.input(x), .stride = kStride, .column = 11},
                      .y = {.buffer = run.input(y), .stride = y_stride},
                      .out = run.output(uint64_t{kMaxRows} * (kN + kM) * 4),
                      .n = kN,
                      .m = kM};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(kRows);
      const std::vector<float> got = run.read<float>(op.out, uint64_t{kRows} * (kN + kM));
      std::vector<float> want;
      for (uint32_t row = 0; row < kRows; ++row) {
        for (uint32_t i = 0; i < kN; ++i) want.push_back(x[row * kStride + 11 + i]);
        for (uint32_t i = 0; i < kM; ++i) want.push_back(y[row * y_stride + i]);
      }
      EXPECT_EQ(got, want);
      const std::vector<uint32_t> all = run.read<uint32_t>(op.out, uint64_t{kMaxRows} * (kN + kM));
      for (size_t i = want.size(); i < all.size(); ++i) ASSERT_EQ(all[i], kPoison) << "row past the last";
    });
  }
}

TEST(Sparsify, EveryVariantMatchesTheOracle) {
  constexpr uint32_t kN = 321, kStride = 700, kColumn = 5;
  const std::vector<float> x = random_floats(size_t{kMaxRows} * kStride, 3);
  for (const float deviations : {0.0f, 1.2f}) {
    for_each_variant("sparsify", sparsify_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      const Sparsify op{.x = {.buffer = run.inout(x), .stride = kStride, .column = kColumn},
                        .n = kN,
                        .deviations = deviations};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(kRows);
      const std::vector<float> got = run.read<float>(op.x.buffer, x.size());
      std::vector<double> want(x.begin(), x.end());
      for (uint32_t row = 0; row < kRows; ++row) {
        double* const values = &want[row * kStride + kColumn];
        double mean = 0, squares = 0;
        for (uint32_t i = 0; i < kN; ++i) mean += values[i] / kN;
        for (uint32_t i = 0; i < kN; ++i) squares += (values[i] - mean) * (values[i] - mean) / kN;
        const double threshold = mean + double{deviations} * std::sqrt(squares);
        for (uint32_t i = 0; i < kN; ++i) values[i] = std::max(values[i] - threshold, 0.0);
      }
      EXPECT_LT(rel_l2(got, want), 1e-5) << policy.name;
    });
  }
}

TEST(Activate, EveryVariantMatchesTheOracle) {
  const std::pair<ActivationFn, double (*)(double)> kFunctions[] = {
      {ActivationFn::kGeluErf, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
      {ActivationFn::kTanh, [](double x) { return std::tanh(x); }}};
  for (const auto& [activation, oracle] : kFunctions) {
    for_each_variant("activate", activate_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      expect_values(policy, values(), Activate{.x = {}, .activation = activation}, run, 1e-6, oracle);
    });
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
