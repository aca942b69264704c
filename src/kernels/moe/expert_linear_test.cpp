// Products with experts against double precision: rows that share x and rows of their own a slot, one and two matrices,
// biases, pieces of whole experts. linear_test tests the reading of each format: here some of each kind.
#include "kernels/moe/expert_linear.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "kernels/linear/test_weights.h"
#include "kernels/moe/group_routes.h"
#include "kernels/moe/variants.h"
#include "kernels/quantize_q8/variants.h"
#include "kernels/testing/kernel_harness.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kExperts = 5, kUsed = 2;
constexpr double kBound = 1e-5, kMatrixBound = 3e-5;  // linear/linear.h

struct Case {
  uint32_t n, k, matrices = 1;
  bool x_per_slot = false, bias = false;
  uint32_t experts_per_piece = 0;
  uint32_t max_rows = 3;  // more than are replayed: the last one is extra
};

// Each row of x is sent to two experts, among them the first and the last, which many rows are sent to.
std::vector<uint32_t> some_routes(uint32_t max_rows) {
  std::vector<uint32_t> routes(size_t{max_rows} * 2 * kUsed);
  for (uint32_t row = 0; row < max_rows; ++row) {
    routes[row * 2 * kUsed] = row < 3 ? kExperts - 1 - row : kExperts - 1;
    routes[row * 2 * kUsed + 1] = row % 3;
  }
  return routes;
}

template <class T>
void round_to_f16(std::vector<T>& values) {
  for (T& value : values) value = f16_to_f32(f32_to_f16(static_cast<float>(value)));
}

void run_case(const Case& c, WeightFormat format, const ProductRow& row, const Policy& policy) {
  SCOPED_TRACE(format_text("%u matrices of %u x %u", c.matrices, c.n, c.k));
  TestWeight weight = random_weight(format, c.matrices * kExperts * c.n, c.k, 31);
  const uint32_t max_rows = c.max_rows, rows = c.max_rows - 1;
  const uint32_t x_slots = c.x_per_slot ? kUsed : 1;
  std::vector<float> x = random_floats(size_t{max_rows} * x_slots * c.k, 32);
  const std::vector<float> bias = random_floats(weight.n, 33);
  const std::vector<uint32_t> routes = some_routes(max_rows);
  const uint32_t columns = c.matrices * kUsed * c.n, stride = columns + 4;
  KernelRun run(policy, max_rows);
  const Weight uploaded = upload(run, weight, c.experts_per_piece * c.n);
  ExpertLinear op{.weight = uploaded,
                  .n = c.n,
                  .matrices = c.matrices,
                  .x = {.f32 = run.input(x)},
                  .x_per_slot = c.x_per_slot,
                  .routes = {.view = run.input(routes), .n_experts = kExperts, .n_used = kUsed},
                  .y = run.output(uint64_t{max_rows} * stride * 4),
                  .y_stride = stride,
                  .y_column = 4};
  if (c.bias) op.bias = run.input(bias);
  const bool is_recorded = run.record([&](Context& ctx) -> Result<void> {
    DP_TRY(const ProductChoice choice, resolve_expert_product(ctx, uploaded, c.n));
    if (reads_groups(choice)) {
      op.routes.groups = run.output(GroupSizes(op.routes, max_rows).bytes());
      DP_CHECK(record(ctx, GroupRoutes{.routes = op.routes, .groups = op.routes.groups}));
    }
    return record(ctx, choice, op);
  });
  if (!is_recorded) return;
  run.replay(rows);
  if (row.q8) x = through_q8(x);
  const bool on_matrix_units = row.algorithm == Algorithm::kGroupedMatrix;
  if (on_matrix_units) {
    round_to_f16(x);
    round_to_f16(weight.values);
  }
  std::vector<double> want;
  for (uint32_t i = 0; i < rows; ++i) {
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
  const std::vector<float> y = run.read<float>(op.y, uint64_t{max_rows} * stride);
  std::vector<float> got;
  for (uint32_t i = 0; i < rows; ++i) {
    got.insert(got.end(), &y[i * stride + 4], &y[i * stride + 4] + columns);
  }
  EXPECT_LT(rel_l2(got, want), on_matrix_units ? kMatrixBound : kBound);
  EXPECT_EQ(run.read<uint32_t>(op.y, 1)[0], kPoison) << "a column before the first";
  EXPECT_EQ(run.read<uint32_t>(op.y, uint64_t{max_rows} * stride).back(), kPoison) << "row past the last";
}

// Gates and ups in one product: both forms of what comes out, against the same product without a gate.
void run_gated_case(const Case& c, WeightFormat format, const ProductRow& row, const Policy& policy) {
  SCOPED_TRACE(format_text("gated %u x %u", c.n, c.k));
  const TestWeight weight = random_weight(format, 2 * kExperts * c.n, c.k, 31);
  const uint32_t max_rows = c.max_rows, rows = c.max_rows - 1, columns = kUsed * c.n;
  const std::vector<float> x = random_floats(size_t{max_rows} * c.k, 32);
  const std::vector<float> bias = random_floats(weight.n, 33);
  const std::vector<uint32_t> routes = some_routes(max_rows);
  KernelRun run(policy, max_rows);
  const Weight uploaded = upload(run, weight, 0);
  ExpertLinear plain{.weight = uploaded,
                     .n = c.n,
                     .matrices = 2,
                     .x = {.f32 = run.input(x)},
                     .routes = {.view = run.input(routes), .n_experts = kExperts, .n_used = kUsed},
                     .y = run.output(uint64_t{max_rows} * 2 * columns * 4),
                     .y_stride = 2 * columns};
  if (c.bias) plain.bias = run.input(bias);
  ExpertLinear gated = plain;
  gated.gate = Gate{.activation = ActivationFn::kSilu,
                    .y = {.f32 = run.output(uint64_t{max_rows} * columns * 4),
                          .q8 = run.output(q8_bytes(max_rows, columns))}};
  const bool is_recorded = run.record([&](Context& ctx) -> Result<void> {
    DP_TRY(const ProductChoice choice, resolve_expert_product(ctx, uploaded, c.n));
    EXPECT_EQ(refuse_expert_gate(choice, ActivationFn::kSilu), "");
    DP_CHECK(record(ctx, choice, plain));
    return record(ctx, choice, gated);
  });
  if (!is_recorded) return;
  run.replay(rows);
  const std::vector<float> both = run.read<float>(plain.y, uint64_t{max_rows} * 2 * columns);
  std::vector<double> want;
  for (uint32_t i = 0; i < rows; ++i) {
    for (uint32_t j = 0; j < columns; ++j) {
      const double g = both[size_t{i} * 2 * columns + j], up = both[size_t{i} * 2 * columns + columns + j];
      want.push_back(g / (1 + std::exp(-g)) * up);
    }
  }
  const std::vector<float> y = run.read<float>(gated.gate->y.f32, uint64_t{max_rows} * columns);
  EXPECT_LT(rel_l2(std::vector<float>(y.begin(), y.begin() + std::ssize(want)), want), kBound) << row.name;
  expect_q8(run.read<uint8_t>(gated.gate->y.q8, q8_bytes(max_rows, columns)), y, max_rows, rows, columns);
}

class ExpertLinearTest : public ::testing::TestWithParam<WeightFormat> {};

TEST_P(ExpertLinearTest, EveryVariantMatchesTheOracle) {
  const WeightFormat format = GetParam();
  const std::string operation = expert_operation(format);
  for_each_variant(operation, expert_matvec_variants(format), [&](const Policy& policy) {
    const auto rows = expert_matvec_variants(format);
    const ProductRow& row = *std::ranges::find(rows, policy.forced.at(operation), &ProductRow::name);
    if (row.algorithm == Algorithm::kGrouped || row.algorithm == Algorithm::kGroupedMatrix) {
      run_case({.n = 96, .k = 256, .matrices = 2, .bias = true, .max_rows = 81}, format, row, policy);
      run_case({.n = 96, .k = 512, .x_per_slot = true, .experts_per_piece = 2, .max_rows = 70}, format, row,
               policy);
      return;
    }
    run_case({.n = 64, .k = 256, .matrices = 2, .bias = true}, format, row, policy);
    run_case({.n = 96, .k = 512, .x_per_slot = true, .experts_per_piece = 2}, format, row, policy);
    if (row.algorithm == Algorithm::kPortable) run_case({.n = 9, .k = 21}, format, row, policy);
    if (row.algorithm == Algorithm::kTiled) {
      run_gated_case({.n = 64, .k = 256, .bias = true}, format, row, policy);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Formats, ExpertLinearTest,
                         ::testing::Values(WeightFormat::kF32, WeightFormat::kQ4_K, WeightFormat::kQ8_0,
                                           WeightFormat::kTileQ4, WeightFormat::kTileQ6,
                                           WeightFormat::kTileF16),
                         [](const auto& test) { return std::string(weight_format_info(test.param).name); });

}  // namespace
}  // namespace doppler::kernels::testing
