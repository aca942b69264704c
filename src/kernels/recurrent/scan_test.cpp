// scan against double precision, both rules: a text in chunks, in steps of one row, and in slots of many sequences.
#include "kernels/recurrent/scan_oracle.h"
#include "kernels/recurrent/test_steps.h"
#include "kernels/recurrent/variants.h"

namespace doppler::kernels::testing {
namespace {

struct Case {
  ScanRule rule;
  uint32_t n_heads, n_key_heads, key_dim, value_dim;
  bool is_tiled = false;
};
class ScanTest : public ::testing::TestWithParam<Case> {};

constexpr uint32_t kRowCount = 21;

TEST_P(ScanTest, AnyStepsGiveWhatOnePassGives) {
  const Case c = GetParam();
  Scan shape_op{.rule = c.rule,
                .n_heads = c.n_heads,
                .n_key_heads = c.n_key_heads,
                .is_tiled = c.is_tiled,
                .key_dim = c.key_dim,
                .value_dim = c.value_dim};
  shape_op.gates_stride = shape_op.x_stride();  // gates in the first columns of x itself
  shape_op.gate_column = 1;
  shape_op.rate_column = 1 + c.n_heads;
  const uint32_t stride = shape_op.x_stride();
  const std::vector<float> x = random_floats(size_t{kRowCount} * stride, 5, 0.7f);
  std::vector<float> vectors;
  for (uint32_t i = 0; i < c.n_heads; ++i) vectors.push_back(-0.05f - 0.4f * static_cast<float>(i));
  for (uint32_t i = 0; i < c.n_heads; ++i) vectors.push_back(i == 0 ? -10.8f : 0.3f);  // a dt of 2e-5 too
  for (uint32_t i = 0; i < c.n_heads; ++i) vectors.push_back(0.5f);
  const std::vector<double> want = scan_oracle(shape_op, x, vectors, stride);
  const StepShape shape{.x_columns = stride,
                        .y_columns = c.n_heads * c.value_dim,
                        .state_floats = shape_op.state_floats(),
                        .weights = {vectors}};
  const RecordSteps record_steps = [&](Context& ctx, const StepViews& views) {
    Scan op = shape_op;
    op.x = op.gates = views.x;
    op.vectors = views.weights[0];
    op.state = views.state;
    op.y = views.y;
    return record(ctx, op);
  };
  // Nothing where the variant is not for such steps or shapes.
  const auto expect = [&](const std::vector<float>& y) {
    if (!y.empty()) {
      EXPECT_LT(rel_l2(y, want), 1e-5);
    }
  };
  const std::vector<uint32_t> ones(kRowCount, 1);
  for_each_variant("scan", scan_variants(), [&](const Policy& policy) {
    expect(run_chunks(policy, shape, x, {11, 1, 9}, 11, record_steps));
    expect(run_chunks(policy, shape, x, ones, 1, record_steps));
    expect(run_chunks(policy, shape, x, {11, 1, 9}, 11, record_steps, true));
    expect(run_chunks(policy, shape, x, ones, 1, record_steps, true));
    expect(run_slots(policy, shape, x, 13, kRowCount, record_steps));
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, ScanTest,
                         ::testing::Values(Case{ScanRule::kGatedDelta, 4, 2, 36, 40, true},
                                           Case{ScanRule::kMamba2, 6, 3, 10, 12},
                                           Case{ScanRule::kMamba2, 4, 2, 36, 24}));

}  // namespace
}  // namespace doppler::kernels::testing
