// The kernels that unpack each weight once for a few rows of x, in every format and for every number of rows, against
// double precision. ../linear/linear_test.cpp tests the parts that they share with other rows of the table (checks,
// quantising x).
#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/linear/pair_check.h"
#include "kernels/linear/product.h"
#include "kernels/linear/record_linear.h"
#include "kernels/linear/test_weights.h"
#include "kernels/testing/q8_check.h"
#include "kernels/tuning.h"

namespace doppler::kernels::testing {
namespace {

constexpr double kBound = 1e-5;  // linear.h

struct Case {
  uint32_t n, k;
  uint32_t max_rows = 16;
  std::vector<uint32_t> rows;  // of one replay after another
  uint32_t rows_per_piece = 0;
  bool bias = false, accumulate = false, gated = false;
  uint32_t y_stride = 0, y_column = 0;
  std::map<std::string, uint32_t, std::less<>> constants;  // where tuning would set them
};

// One row too: a prompt of one token.
std::vector<uint32_t> down_from(uint32_t most) {
  std::vector<uint32_t> rows;
  for (uint32_t i = most; i >= 1; --i) rows.push_back(i);
  return rows;
}

double silu(double x) { return x / (1 + std::exp(-x)); }

void expect_rows(const Case& c, uint32_t rows, std::span<const double> sums, std::span<const float> bias,
                 std::span<const float> before, std::span<const float> y) {
  const uint32_t columns = c.gated ? c.n / 2 : c.n;
  const uint32_t stride = c.y_stride == 0 ? columns : c.y_stride;
  std::vector<double> want;
  std::vector<float> got;
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t row = i / stride, column = i % stride;
    if (row >= rows || column < c.y_column || column >= c.y_column + columns) {
      ASSERT_EQ(y[i], before[i]) << "a value that is not an output, number " << i;
      continue;
    }
    const size_t output = column - c.y_column;
    const auto sum = [&](size_t n) { return sums[row * c.n + n] + (c.bias ? bias[n] : 0.0f); };
    double value = c.gated ? silu(sum(output)) * sum(columns + output) : sum(output);
    if (c.accumulate) value += before[i];
    want.push_back(value);
    got.push_back(y[i]);
  }
  EXPECT_LT(rel_l2(got, want), kBound);
}

Epilogue epilogue(const Case& c, const Rows& y) {
  if (c.gated) return Gate{.activation = ActivationFn::kSilu, .y = y};
  if (c.accumulate) return AddResidual{.y = y.f32, .y_stride = c.y_stride, .y_column = c.y_column};
  return Store{.y = y.f32, .y_stride = c.y_stride, .y_column = c.y_column};
}

void run_case(const Case& c, WeightFormat format, const ProductRow& row) {
  SCOPED_TRACE(
      format_text("%s, %u x %u, at most %u rows", std::string(row.name).c_str(), c.n, c.k, c.max_rows));
  const TestWeight weight = random_weight(format, c.n, c.k, 11);
  const uint32_t columns = c.gated ? c.n / 2 : c.n;
  const uint32_t stride = c.y_stride == 0 ? columns : c.y_stride;
  // A gate multiplies the relative error of its sum by the sum: sums of order 1 keep the bound meaningful.
  const std::vector<float> x = random_floats(size_t{c.max_rows} * c.k, 3, c.gated ? 0.05f : 1.0f);
  const std::vector<float> bias = random_floats(c.n, 4);
  const std::vector<float> before = random_floats(size_t{c.max_rows} * stride, 5);
  const std::vector<double> sums = product(weight, row.q8 ? through_q8(x) : x, c.max_rows);

  const ProductShape shape{.format = format, .n = c.n, .k = c.k, .max_rows = c.max_rows};
  Policy policy;
  policy.forced[product_operation(shape)] = row.name;
  TuningTable tuning;
  tuning.choices[{product_operation(shape),
                  format_text("%s %ux%u", weight_format_info(format).name, c.n, c.k)}] = {
      .variant = std::string(row.name), .constants = c.constants};
  policy.tuning = std::make_shared<const TuningTable>(tuning);

  KernelRun run(policy, c.max_rows);
  const Weight uploaded = upload(run, weight, c.rows_per_piece);
  Rows forms{.f32 = run.inout(before)};
  if (c.gated) forms.q8 = run.output(q8_bytes(c.max_rows, columns));
  Linear op{.weight = uploaded, .x = Rows{.f32 = run.input(x)}, .y = epilogue(c, forms)};
  if (c.bias) op.bias = run.input(bias);
  if (!run.record([&](Context& ctx) { return record_linear(ctx, op); })) return;
  for (const ChosenConstant& constant : run.choices().front().constants) {
    const auto asked = c.constants.find(constant.name);
    if (asked == c.constants.end()) continue;
    EXPECT_TRUE(constant.value == asked->second) << constant.name << " is " << constant.value;
  }
  for (const uint32_t rows : c.rows) {
    SCOPED_TRACE(format_text("%u rows", rows));
    run.overwrite(forms.f32, before);
    run.replay(rows);
    const std::vector<float> y = run.read<float>(forms.f32, before.size());
    expect_rows(c, rows, sums, bias, before, y);
    if (c.gated)
      expect_q8(run.read<uint8_t>(forms.q8, q8_bytes(c.max_rows, columns)), y, c.max_rows, rows, columns);
  }
}

class MatmulSkinnyTest : public ::testing::TestWithParam<WeightFormat> {
 protected:
  // `only`: of one algorithm, not of all of this folder.
  void run_all(std::initializer_list<Case> cases, std::optional<Algorithm> only = {}) {
    constexpr Algorithm kOfFolder[] = {Algorithm::kOnce, Algorithm::kOnceOfCpu, Algorithm::kFew};
    for (const Case& c : cases) {
      for (const ProductRow& row : matmul_skinny_variants(GetParam())) {
        if (only ? row.algorithm != *only : std::ranges::count(kOfFolder, row.algorithm) == 0) continue;
        const std::string reason = refuse_by_device(row.lane, row.needs, device().caps(), Policy{});
        if (reason.empty()) {
          run_case(c, GetParam(), row);
        } else {
          note_refusal(row.name, reason);
        }
      }
    }
  }
};

TEST_P(MatmulSkinnyTest, EveryNumberOfRows) { run_all({{.n = 70, .k = 768, .rows = down_from(16)}}); }

// The steps after the sums are the same for all formats: one of numbers, of blocks and of tiles is enough.
class KindsOfWeights : public MatmulSkinnyTest {};
INSTANTIATE_TEST_SUITE_P(Formats, KindsOfWeights,
                         ::testing::Values(WeightFormat::kF32, WeightFormat::kQ8_0, WeightFormat::kQ4_K,
                                           WeightFormat::kTileQ4, WeightFormat::kTileF16),
                         [](const auto& format) {
                           return std::string(weight_format_info(format.param).name);
                         });

TEST_P(KindsOfWeights, FewerRowsWithEpiloguesInPieces) {
  run_all({{.n = 90,
            .k = 256,
            .max_rows = 7,
            .rows = down_from(7),
            .rows_per_piece = 64,
            .bias = true,
            .accumulate = true,
            .y_stride = 120,
            .y_column = 9},
           {.n = 33, .k = 512, .max_rows = 2, .rows = {2}, .accumulate = true}});
}

TEST_P(KindsOfWeights, Gated) {
  run_all({{.n = 192, .k = 256, .max_rows = 3, .rows = {3, 2}, .bias = true, .gated = true}});
}

INSTANTIATE_TEST_SUITE_P(Formats, MatmulSkinnyTest, ::testing::ValuesIn(kAllFormats), [](const auto& format) {
  return std::string(weight_format_info(format.param).name);
});

// Other shapes of a workgroup, the last chunk of units not full, and weight rows that end within one.
class OtherConstants : public MatmulSkinnyTest {};
TEST_P(OtherConstants, ComputeTheSame) {
  run_all({{.n = 150,
            .k = 1312,
            .max_rows = 11,
            .rows = {11, 5},
            .constants = {{"rows", 32}, {"pair", 2}, {"slices", 4}, {"depth", 2}}},
           {.n = 150,
            .k = 96,
            .max_rows = 4,
            .rows = {4, 3},
            .constants = {{"rows", 16}, {"pair", 2}, {"slices", 1}, {"depth", 1}}},
           {.n = 150,
            .k = 1312,
            .max_rows = 6,
            .rows = {6, 1},
            .rows_per_piece = 128,
            .bias = true,
            .accumulate = true,
            .y_stride = 160,
            .y_column = 3,
            .constants = {{"pair", 1}, {"slices", 2}}},
           {.n = 150,
            .k = 1312,
            .max_rows = 6,
            .rows = {6, 2},
            .rows_per_piece = 128,
            .bias = true,
            .accumulate = true,
            .y_stride = 160,
            .y_column = 3,
            .constants = {{"splits", 4}, {"pair", 2}, {"slices", 4}}},
           {.n = 192,
            .k = 1024,
            .max_rows = 8,
            .rows = {8, 5},
            .bias = true,
            .gated = true,
            .constants = {{"slices", 4}}},
           {.n = 192,
            .k = 1312,
            .max_rows = 13,
            .rows = {13, 9},
            .gated = true,
            .constants = {{"rows", 32}, {"slices", 8}, {"depth", 1}}}});
}
INSTANTIATE_TEST_SUITE_P(Formats, OtherConstants,
                         ::testing::Values(WeightFormat::kTileQ4, WeightFormat::kTileQ6,
                                           WeightFormat::kTileF16),
                         [](const auto& format) {
                           return std::string(weight_format_info(format.param).name);
                         });

// Four weight rows an invocation, which end within a workgroup.
class FourWeightRows : public MatmulSkinnyTest {};
TEST_P(FourWeightRows, ComputeTheSame) {
  run_all({{.n = 250,
            .k = 736,
            .max_rows = 8,
            .rows = {8, 3},
            .rows_per_piece = 128,
            .bias = true,
            .accumulate = true,
            .constants = {{"pair", 4}, {"slices", 4}, {"splits", 2}}},
           {.n = 256,
            .k = 512,
            .max_rows = 7,
            .rows = {7, 2},
            .bias = true,
            .gated = true,
            .constants = {{"pair", 4}, {"slices", 4}}}},
          Algorithm::kFew);
}
INSTANTIATE_TEST_SUITE_P(Formats, FourWeightRows,
                         ::testing::Values(WeightFormat::kTileQ4, WeightFormat::kTileQ6),
                         [](const auto& format) {
                           return std::string(weight_format_info(format.param).name);
                         });

// The last split is shorter than the others.
TEST(MatmulFew, LeavesTheSumsOfItsSplits) {
  constexpr uint32_t kN = 90, kK = 1312, kRows = 6;
  const TestWeight weight = random_weight(WeightFormat::kTileQ4, kN, kK, 11);
  const std::vector<float> x = random_floats(size_t{kRows} * kK, 3, 1.0f);
  const std::vector<double> want = product(weight, through_q8(x), kRows);
  Policy policy;
  policy.forced["matmul_skinny.tile_q4"] = "matmul_skinny.tile_q4.few.dp4a";
  TuningTable tuning;
  tuning.choices[{"matmul_skinny.tile_q4", format_text("tile_q4 %ux%u", kN, kK)}] = {
      .variant = "matmul_skinny.tile_q4.few.dp4a", .constants = {{"splits", 4}, {"slices", 2}}};
  policy.tuning = std::make_shared<const TuningTable>(tuning);

  KernelRun run(policy, kRows);
  const Weight uploaded = upload(run, weight, 0);
  SplitSums sums;
  const bool recorded = run.record([&](Context& ctx) -> Result<void> {
    DP_TRY(const ProductChoice choice, resolve_product(ctx, uploaded));
    const std::optional<SplitSums> left = left_sums(ctx, uploaded, choice);
    EXPECT_TRUE(left);
    sums = left.value_or(SplitSums{});
    sums.partials = run.output(sums.bytes());
    return record(ctx, choice,
                  Linear{.weight = uploaded, .x = Rows{.f32 = run.input(x)}, .y = LeaveSums{.sums = sums}});
  });
  if (!recorded) GTEST_SKIP();
  ASSERT_EQ(sums.splits, 4u);
  run.replay(kRows);
  const std::vector<float> parts = run.read<float>(sums.partials, sums.bytes() / sizeof(float));
  std::vector<float> got;
  for (uint32_t row = 0; row < kRows; ++row) {
    for (uint32_t i = 0; i < kN; ++i) {
      float sum = 0;
      for (uint32_t s = 0; s < sums.splits; ++s)
        sum += parts[s * sums.split_stride + row * sums.row_stride + i];
      got.push_back(sum);
    }
  }
  EXPECT_LT(rel_l2(got, want), kBound);
}

// q and k beside v, the second ending inside a tile.
TEST(MatmulFew, OfAPairIsBothProducts) {
  constexpr uint32_t kK = 1312, kRows[] = {8, 3};
  Policy policy;
  for (const char* operation : {"matmul_skinny.tile_q4", "matmul_skinny.tile_q6"}) {
    policy.forced[operation] = std::string(operation) + ".few.dp4a";
  }
  KernelRun run(policy, kRows[0]);
  if (!expect_both_products(run, random_weight(WeightFormat::kTileQ4, 128, kK, 1),
                            random_weight(WeightFormat::kTileQ6, 90, kK, 2), /*has_bias=*/true, kRows)) {
    GTEST_SKIP();
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
