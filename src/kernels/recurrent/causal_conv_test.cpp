// causal_conv against double precision: a text in chunks, in steps of one row, and in slots of many sequences.
#include <cmath>

#include "kernels/recurrent/test_steps.h"
#include "kernels/recurrent/variants.h"

namespace doppler::kernels::testing {
namespace {

struct Case {
  uint32_t n, kernel;
  bool gated, has_bias;
  ActivationFn activation;
};
class CausalConvTest : public ::testing::TestWithParam<Case> {};

constexpr uint32_t kRowCount = 11;

std::vector<double> oracle(const Case& c, const std::vector<float>& x, const std::vector<float>& weight,
                           uint32_t stride, uint32_t column) {
  std::vector<double> y;
  const auto input = [&](int row, uint32_t i) -> double {
    if (row < 0) return 0;
    const size_t at = size_t(row) * stride + column + i;
    return c.gated ? double{x[at]} * x[at + 2 * c.n] : x[at];
  };
  for (int row = 0; row < int{kRowCount}; ++row) {
    for (uint32_t i = 0; i < c.n; ++i) {
      double sum = c.has_bias ? weight[size_t{c.n} * c.kernel + i] : 0;
      for (uint32_t j = 0; j < c.kernel; ++j) {
        sum += weight[size_t{i} * c.kernel + j] * input(row - int(c.kernel - 1 - j), i);
      }
      if (c.activation == ActivationFn::kSilu) sum = sum / (1 + std::exp(-sum));
      if (c.gated) sum *= x[size_t(row) * stride + column + c.n + i];
      y.push_back(sum);
    }
  }
  return y;
}

TEST_P(CausalConvTest, AnyStepsGiveWhatOnePassGives) {
  const Case c = GetParam();
  const uint32_t column = 3, stride = column + (c.gated ? 3 : 1) * c.n + 2;
  const std::vector<float> x = random_floats(size_t{kRowCount} * stride, 3);
  const std::vector<float> weight = random_floats(size_t{c.n} * (c.kernel + (c.has_bias ? 1 : 0)), 4);
  const std::vector<double> want = oracle(c, x, weight, stride, column);
  const StepShape shape{.x_columns = stride,
                        .y_columns = c.n,
                        .state_floats = uint64_t{c.kernel - 1} * c.n,
                        .weights = {weight}};
  const RecordSteps record_steps = [&](Context& ctx, const StepViews& views) {
    return record(ctx, CausalConv{.x = views.x,
                                  .x_stride = stride,
                                  .x_column = column,
                                  .weight = views.weights[0],
                                  .state = views.state,
                                  .y = {.f32 = views.y},
                                  .n = c.n,
                                  .kernel = c.kernel,
                                  .has_bias = c.has_bias,
                                  .gated = c.gated,
                                  .activation = c.activation});
  };
  for_each_variant("causal_conv", causal_conv_variants(), [&](const Policy& policy) {
    EXPECT_LT(rel_l2(run_chunks(policy, shape, x, {5, 1, 2, 3}, 5, record_steps), want), 1e-6);
    EXPECT_LT(
        rel_l2(run_chunks(policy, shape, x, std::vector<uint32_t>(kRowCount, 1), 1, record_steps), want),
        1e-6);
    EXPECT_LT(rel_l2(run_slots(policy, shape, x, 6, kRowCount, record_steps), want), 1e-6);
    EXPECT_LT(rel_l2(run_chunks(policy, shape, x, {5, 1, 2, 3}, 5, record_steps, true), want), 1e-6);
    EXPECT_LT(rel_l2(run_chunks(policy, shape, x, std::vector<uint32_t>(kRowCount, 1), 1, record_steps, true),
                     want),
              1e-6);
  });
}

// Decode steps are replayed with the rows of the first one: if sequences have stopped since, the last rows belong to
// none.
TEST(CausalConv, ARowPastTheLastMovesNoState) {
  constexpr uint32_t kN = 8, kKernel = 3;
  TablesImage image({.sequences = 2, .rows = 4, .blocks = 2, .block_len = 16});
  image.state().rows = image.state().single_rows = 1;
  image.row(0) = {.slot = 1, .value = 5};
  KernelRun run({}, 2);
  const std::vector<float> x = random_floats(2 * kN, 3);
  std::vector<float> kept = random_floats(size_t{2} * (kKernel - 1) * kN, 4);
  const TensorView tables = run.inout(image.bytes), state = run.inout(kept);
  const CausalConv op{.x = run.input(x),
                      .x_stride = kN,
                      .weight = run.input(random_floats(kN * kKernel, 5)),
                      .state = state,
                      .y = {.f32 = run.output(2 * kN * 4)},
                      .n = kN,
                      .kernel = kKernel,
                      .single_rows = true};
  ASSERT_TRUE(run.record([&](Context& ctx) {
    Context many = with_tables(ctx, image, tables);
    return record(many, op);
  }));
  run.replay(2);
  for (uint32_t i = 0; i < kN; ++i) {  // slot 1: the older input leaves, the row's comes
    kept[2 * kN + i] = kept[3 * kN + i];
    kept[3 * kN + i] = x[i];
  }
  EXPECT_EQ(run.read<float>(state, kept.size()), kept);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CausalConvTest,
                         ::testing::Values(Case{70, 3, true, false, ActivationFn::kNone},
                                           Case{133, 4, false, true, ActivationFn::kSilu}));

}  // namespace
}  // namespace doppler::kernels::testing
