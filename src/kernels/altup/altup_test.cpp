// Tests AltUp's operations against double precision. Rows after the last must not change.
#include <cmath>

#include "kernels/altup/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kMaxRows = 3, kRows = 2, kN = 200, kS = kAltupStreams;
constexpr uint32_t kStream = kMaxRows * kN;

// Compares the rows that were made, in all streams, and checks that no other row was.
void expect_streams(const std::vector<float>& got, const std::vector<double>& want) {
  std::vector<float> made;
  for (uint32_t j = 0; j < kS; ++j)
    made.insert(made.end(), &got[j * kStream], &got[j * kStream] + kRows * kN);
  EXPECT_LT(rel_l2(made, want), 1e-6);
}

struct Given {
  std::vector<float> x = random_floats(kS * kStream, 1), more = random_floats(kStream, 2),
                     router = random_floats(kMaxRows * kS, 3), weight = random_floats(kS * kS * kS, 4, 0.3f);
  double coefficient(uint32_t row, uint32_t i, double scale) const {
    double sum = 0;
    for (uint32_t t = 0; t < kS; ++t) {
      sum += double{weight[i * kS + t]} * std::tanh(scale * double{router[row * kS + t]});
    }
    return sum;
  }
};

TEST(AltupMatch, EveryVariantMatchesTheOracle) {
  const Given given;
  for (const bool is_mean : {false, true}) {
    for_each_variant("altup_match", altup_match_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      AltupMatch op{
          .x = {}, .y = run.output(uint64_t{is_mean ? 1 : kS} * kStream * 4), .n = kN, .is_mean = is_mean};
      for (uint32_t j = 0; j < kS; ++j) {
        op.x[j] = run.input(std::vector<float>(&given.x[j * kStream], &given.x[j * kStream] + kStream));
      }
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(kRows);
      std::vector<double> want(kS * kRows * kN), mean(kRows * kN);
      for (uint32_t row = 0; row < kRows; ++row) {
        double squares[kS] = {};
        for (uint32_t j = 0; j < kS; ++j) {
          for (uint32_t i = 0; i < kN; ++i)
            squares[j] += std::pow(given.x[j * kStream + row * kN + i], 2) / kN;
        }
        for (uint32_t j = 0; j < kS; ++j) {
          const double scale = j == 0 ? 1 : std::sqrt(squares[0] / std::max(squares[j], 1e-5));
          for (uint32_t i = 0; i < kN; ++i) {
            const double value = scale * double{given.x[j * kStream + row * kN + i]};
            want[(j * kRows + row) * kN + i] = value;
            mean[row * kN + i] += value / kS;
          }
        }
      }
      if (!is_mean) return expect_streams(run.read<float>(op.y, kS * kStream), want);
      EXPECT_LT(rel_l2(run.read<float>(op.y, kRows * kN), mean), 1e-6);
    });
  }
}

TEST(AltupPredict, EveryVariantMatchesTheOracle) {
  const Given given;
  for (const bool has_added : {false, true}) {
    for_each_variant("altup_predict", altup_predict_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      const AltupPredict op{.x = run.input(given.x),
                            .y = run.output(uint64_t{kS} * kStream * 4),
                            .added = has_added ? run.input(given.more) : TensorView{},
                            .router = run.input(given.router),
                            .weight = run.input(given.weight),
                            .n = kN,
                            .router_scale = 0.1f};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(kRows);
      std::vector<double> want;
      for (uint32_t j = 0; j < kS; ++j) {
        for (uint32_t at = 0; at < kRows * kN; ++at) {
          const auto x = [&](uint32_t k) {
            return double{given.x[k * kStream + at]} + (has_added && k > 0 ? double{given.more[at]} : 0);
          };
          double sum = x(j);
          for (uint32_t k = 0; k < kS; ++k)
            sum += given.coefficient(at / kN, j * kS + k, double{op.router_scale}) * x(k);
          want.push_back(sum);
        }
      }
      expect_streams(run.read<float>(op.y, kS * kStream), want);
    });
  }
}

TEST(AltupCorrect, EveryVariantMatchesTheOracle) {
  const Given given;
  for_each_variant("altup_correct", altup_correct_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    const AltupCorrect op{.x = run.input(given.x),
                          .y = run.output(uint64_t{kS} * kStream * 4),
                          .made = run.input(given.more),
                          .router = run.input(given.router),
                          .weight = run.input(given.weight),
                          .n = kN,
                          .router_scale = 3};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kRows);
    std::vector<double> want;
    for (uint32_t j = 0; j < kS; ++j) {
      for (uint32_t at = 0; at < kRows * kN; ++at) {
        const double change = double{given.more[at]} - double{given.x[at]};
        want.push_back(double{given.x[j * kStream + at]} +
                       change * (1 + given.coefficient(at / kN, j, double{op.router_scale})));
      }
    }
    expect_streams(run.read<float>(op.y, kS * kStream), want);
  });
}

}  // namespace
}  // namespace doppler::kernels::testing
