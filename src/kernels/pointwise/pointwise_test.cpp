// scale, xielu and activate against double precision; rows behind the last stay as they were.
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
