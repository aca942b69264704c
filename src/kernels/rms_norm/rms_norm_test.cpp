// Tests rms_norm against double precision: row lengths on both sides of every stride, with and without the residual
// (plain or normalised), the q8 output, and the selection of only the last row.
#include <cmath>

#include "kernels/rms_norm/variants.h"
#include "kernels/testing/f16_check.h"
#include "kernels/testing/kernel_harness.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

struct Case {
  uint32_t n;
  uint32_t rows;  // of 5
  bool add = false;
  bool q8 = false;
  bool last_row_only = false;
  bool add_norm = false;
  bool norm = true;
  bool scale = false;
  uint32_t splits = 0;  // of what is added
};

constexpr Case of_splits(Case c, uint32_t splits) {
  c.splits = splits;
  return c;
}

// A product's sums for [rows, n] values: longer rows than are read, and one row more. Numbers have few bits, so that
// `added`, their sums, does not depend on the order.
SplitSums split_sums(KernelRun& run, std::vector<double>& added, uint32_t n, uint32_t splits) {
  const auto rows = static_cast<uint32_t>(added.size() / n);
  SplitSums sums{.splits = splits, .row_stride = (n + 7) / 4 * 4};
  sums.split_stride = sums.row_stride * (rows + 1);
  std::vector<float> parts = random_floats(size_t{splits} * sums.split_stride, 5);
  for (float& part : parts) part = std::round(part * 256) / 256;
  for (size_t i = 0; i < added.size(); ++i) {
    added[i] = 0;
    for (uint32_t split = 0; split < splits; ++split) {
      added[i] += double{parts[split * size_t{sums.split_stride} + i / n * sums.row_stride + i % n]};
    }
  }
  sums.partials = run.input(parts);
  return sums;
}

class RmsNormTest : public ::testing::TestWithParam<Case> {};

TEST_P(RmsNormTest, EveryVariantMatchesTheOracle) {
  const auto [n, rows, add, q8, last, add_norm, norm, scaled, splits] = GetParam();
  constexpr uint32_t kMaxRows = 5;
  constexpr float kEps = 1e-5f;
  constexpr float kSumScale = 0.37f;
  const std::vector<float> x = random_floats(size_t{kMaxRows} * n, 1);
  const std::vector<float> residual = random_floats(size_t{kMaxRows} * n, 2);
  std::vector<double> added(residual.begin(), residual.end());
  const std::vector<float> weight = random_floats(n, 3);
  const std::vector<float> add_weight = random_floats(n, 4);
  for_each_variant("rms_norm", rms_norm_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    const TensorView x_view = run.inout(x);
    const uint32_t out_rows = last ? 1 : kMaxRows;
    const TensorView y_view = run.output(uint64_t{out_rows} * n * 4);
    const auto selected = last ? SelectedRows::kLast : SelectedRows::kAll;
    const TensorView weight_view = norm ? run.input(weight) : TensorView{};
    AddBranch sum{.x = x_view, .branch = {}, .then = {}, .n = n, .eps = kEps};
    if (add && splits == 0) sum.branch.values = run.input(residual);
    if (splits != 0) sum.branch.values = split_sums(run, added, n, splits);
    if (add_norm) sum.branch.norm_weight = run.input(add_weight);
    if (scaled) sum.scale = run.input(std::vector<float>{kSumScale});
    Rows y_forms{.f32 = norm ? y_view : TensorView{}};
    if (q8) y_forms.q8 = run.output(q8_bytes(out_rows, n));
    if (q8) y_forms.f16 = run.output(f16_bytes(out_rows, n));
    if (norm) {
      sum.then = NormOfSum{.weight = weight_view, .y = y_forms, .rows = selected};
    } else {
      sum.then = SumForms{.q8 = y_forms.q8, .f16 = y_forms.f16};
    }
    const RmsNorm alone{
        .x = x_view, .weight = weight_view, .y = y_forms, .n = n, .eps = kEps, .rows = selected};
    if (!run.record([&](Context& ctx) { return add ? record(ctx, sum) : record(ctx, alone); })) return;
    run.replay(rows);

    const uint32_t made = last ? 1 : rows;
    std::vector<double> want(size_t{made} * n);
    std::vector<double> sums(x.begin(), x.end());
    for (uint32_t row = 0; row < rows; ++row) {
      if (last && row + 1 != rows) continue;
      double squares = 0, add_squares = 0;
      for (uint32_t i = 0; i < n; ++i) {
        add_squares += added[size_t{row} * n + i] * added[size_t{row} * n + i];
      }
      const double add_scale = 1 / std::sqrt(add_squares / n + double{kEps});
      for (uint32_t i = 0; i < n; ++i) {
        double& value = sums[size_t{row} * n + i];
        if (add) value += added[size_t{row} * n + i] * (add_norm ? add_scale * add_weight[i] : 1.0);
        if (scaled) value *= double{kSumScale};
        squares += value * value;
      }
      const double scale = 1 / std::sqrt(squares / n + double{kEps});
      for (uint32_t i = 0; i < n; ++i) {
        want[(last ? 0 : size_t{row} * n) + i] = sums[size_t{row} * n + i] * (norm ? scale * weight[i] : 1.0);
      }
    }
    const std::vector<float> y = run.read<float>(norm ? y_view : x_view, uint64_t{made} * n);
    EXPECT_LT(rel_l2(y, want), 1e-6);
    const std::vector<float> stream = run.read<float>(x_view, x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      if (sums[i] == x[i]) {
        ASSERT_EQ(stream[i], x[i]) << "the residual stream, untouched outside its rows";
      } else {
        ASSERT_NEAR(stream[i], sums[i], 1e-6 * (1 + std::fabs(sums[i]))) << "the residual stream at " << i;
      }
    }
    if (q8) expect_f16(run.read<uint16_t>(y_forms.f16, f16_bytes(out_rows, n) / 2), y, made, n);
    if (q8) expect_q8(run.read<uint8_t>(y_forms.q8, q8_bytes(out_rows, n)), y, out_rows, made, n);
    if (!norm) return;
    const std::vector<uint32_t> all = run.read<uint32_t>(y_view, uint64_t{out_rows} * n);
    for (size_t i = size_t{made} * n; i < all.size(); ++i) ASSERT_EQ(all[i], kPoison) << "row past the last";
  });
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RmsNormTest,
    ::testing::Values(
        Case{1, 1}, Case{7, 3}, Case{63, 5, true}, Case{257, 2}, Case{1021, 3, true}, Case{96, 5, true, true},
        Case{2048, 2, true, true}, Case{4096, 1}, Case{16384, 2, true, true}, Case{16383, 1},
        Case{160, 4, false, true, true}, Case{65, 3, true, false, true}, Case{33, 1, false, false, true},
        Case{64, 5, true, true, false, true}, Case{1152, 2, true, true, false, true},
        Case{257, 3, true, false, true, true}, Case{16383, 1, true, false, false, true},
        Case{1536, 2, true, true, false, true, false}, Case{65, 3, true, false, false, true, false},
        Case{96, 4, true, true, false, true, true, true}, Case{257, 2, true, false, false, false, true, true},
        Case{1536, 3, true, true, false, true, false, true}, of_splits({96, 4, true, true}, 3),
        of_splits({2048, 5, true, true, false, true}, 2), of_splits({257, 3, true, false, true}, 16),
        of_splits({65, 2, true, false, false, true, false}, 2)));

TEST(RmsNorm, RefusesSumsOfTooFewRows) {
  KernelRun run({}, 5);
  const TensorView any = run.input(std::vector<float>(4096));
  const SplitSums sums{.partials = any, .splits = 2, .row_stride = 32, .split_stride = 4 * 32};
  const Result<void> recorded = run.try_record([&](Context& ctx) {
    return record(ctx, AddBranch{.x = any,
                                 .branch = {.values = sums},
                                 .then = NormOfSum{.weight = any, .y = {.f32 = any}},
                                 .n = 32});
  });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(), "rms_norm was given sums of 4 rows of 32 for 5 of 32 values.");
}

TEST(RmsNorm, RefusesQ8OfABrokenBlock) {
  KernelRun run;
  const TensorView any = run.input(std::vector<float>(4096));
  const Result<void> recorded = run.try_record([&](Context& ctx) {
    return record(ctx, RmsNorm{.x = any, .weight = any, .y = {.f32 = any, .q8 = any}, .n = 33});
  });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(), "Row length (33) of rms_norm's q8 output is not a multiple of 32.");
}

}  // namespace
}  // namespace doppler::kernels::testing
