// Products with experts against double precision: rows that share x and rows of their own a slot, one and two matrices,
// biases, pieces of whole experts. How each format is read is linear_test's matter: here some of each kind.
#include "kernels/moe/expert_linear.h"

#include <algorithm>

#include "kernels/linear/test_weights.h"
#include "kernels/moe/variants.h"
#include "kernels/quantize_q8/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kExperts = 5, kUsed = 2, kMaxRows = 3, kRows = 2;
constexpr double kBound = 1e-5;  // expert_linear.h

struct Case {
  uint32_t n, k, matrices = 1;
  bool x_per_slot = false, bias = false;
  uint32_t experts_per_piece = 0;
};

// Each row of x is sent to two experts, among them the first and the last.
std::vector<uint32_t> some_routes() {
  std::vector<uint32_t> routes(size_t{kMaxRows} * 2 * kUsed);
  for (uint32_t row = 0; row < kMaxRows; ++row) {
    routes[row * 2 * kUsed] = kExperts - 1 - row;
    routes[row * 2 * kUsed + 1] = row;
  }
  return routes;
}

void run_case(const Case& c, WeightFormat format, const ProductRow& row, const Policy& policy) {
  SCOPED_TRACE(format_text("%u matrices of %u x %u", c.matrices, c.n, c.k));
  const TestWeight weight = random_weight(format, c.matrices * kExperts * c.n, c.k, 31);
  const uint32_t x_slots = c.x_per_slot ? kUsed : 1;
  std::vector<float> x = random_floats(size_t{kMaxRows} * x_slots * c.k, 32);
  const std::vector<float> bias = random_floats(weight.n, 33);
  const std::vector<uint32_t> routes = some_routes();
  const uint32_t columns = c.matrices * kUsed * c.n, stride = columns + 4;
  KernelRun run(policy, kMaxRows);
  const Weight uploaded = upload(run, weight, c.experts_per_piece * c.n);
  ExpertLinear op{.weight = uploaded,
                  .n = c.n,
                  .matrices = c.matrices,
                  .x = {.f32 = run.input(x)},
                  .x_per_slot = c.x_per_slot,
                  .routes = {.view = run.input(routes), .n_experts = kExperts, .n_used = kUsed},
                  .y = run.output(uint64_t{kMaxRows} * stride * 4),
                  .y_stride = stride,
                  .y_column = 4};
  if (c.bias) op.bias = run.input(bias);
  const bool is_recorded = run.record([&](Context& ctx) -> Result<void> {
    DP_TRY(const ProductChoice choice, resolve_expert_product(ctx, uploaded, c.n));
    return record(ctx, choice, op);
  });
  if (!is_recorded) return;
  run.replay(kRows);
  if (row.q8) x = through_q8(x);
  std::vector<double> want;
  for (uint32_t i = 0; i < kRows; ++i) {
    for (uint32_t m = 0; m < c.matrices; ++m) {
      for (uint32_t slot = 0; slot < kUsed; ++slot) {
        const float* own = &x[size_t{c.x_per_slot ? i * kUsed + slot : i} * c.k];
        const uint32_t first = (m * kExperts + routes[i * 2 * kUsed + slot]) * c.n;
        for (uint32_t r = first; r < first + c.n; ++r) {
          double sum = c.bias ? bias[r] : 0;
          for (uint32_t j = 0; j < c.k; ++j) sum += weight.values[size_t{r} * c.k + j] * own[j];
          want.push_back(sum);
        }
      }
    }
  }
  const std::vector<float> y = run.read<float>(op.y, uint64_t{kMaxRows} * stride);
  std::vector<float> got;
  for (uint32_t i = 0; i < kRows; ++i) {
    got.insert(got.end(), &y[i * stride + 4], &y[i * stride + 4] + columns);
  }
  EXPECT_LT(rel_l2(got, want), kBound);
  EXPECT_EQ(run.read<uint32_t>(op.y, 1)[0], kPoison) << "a column before the first";
  EXPECT_EQ(run.read<uint32_t>(op.y, uint64_t{kMaxRows} * stride).back(), kPoison) << "row past the last";
}

class ExpertLinearTest : public ::testing::TestWithParam<WeightFormat> {};

TEST_P(ExpertLinearTest, EveryVariantMatchesTheOracle) {
  const WeightFormat format = GetParam();
  const std::string operation = std::string("expert_matvec.") + weight_format_info(format).name;
  for_each_variant(operation, expert_matvec_variants(format), [&](const Policy& policy) {
    const auto rows = expert_matvec_variants(format);
    const ProductRow& row = *std::ranges::find(rows, policy.forced.at(operation), &ProductRow::name);
    run_case({.n = 64, .k = 256, .matrices = 2, .bias = true}, format, row, policy);
    run_case({.n = 96, .k = 512, .x_per_slot = true, .experts_per_piece = 2}, format, row, policy);
    if (row.algorithm == Algorithm::kPortable) run_case({.n = 9, .k = 21}, format, row, policy);
  });
}

INSTANTIATE_TEST_SUITE_P(Formats, ExpertLinearTest,
                         ::testing::Values(WeightFormat::kF32, WeightFormat::kQ4_K, WeightFormat::kQ8_0,
                                           WeightFormat::kTileQ4, WeightFormat::kTileQ6,
                                           WeightFormat::kTileF16),
                         [](const auto& test) { return std::string(weight_format_info(test.param).name); });

}  // namespace
}  // namespace doppler::kernels::testing
