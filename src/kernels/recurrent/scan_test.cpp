// scan against double precision, both rules: a text in chunks, in steps of one row, and in slots of many sequences.
#include <cmath>

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

double softplus(double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }

// The gates are columns of x itself.
std::vector<double> oracle(const Case& c, const Scan& op, const std::vector<float>& x,
                           const std::vector<float>& vectors, uint32_t stride) {
  const bool is_ssd = c.rule == ScanRule::kMamba2;
  const uint32_t values = c.n_heads * c.value_dim, keys = c.n_key_heads * c.key_dim;
  std::vector<double> y(size_t{kRowCount} * values);
  for (uint32_t head = 0; head < c.n_heads; ++head) {
    std::vector<double> s(size_t{c.key_dim} * c.value_dim);
    const uint32_t key_head = c.is_tiled ? head % c.n_key_heads : head / (c.n_heads / c.n_key_heads);
    for (uint32_t row = 0; row < kRowCount; ++row) {
      const float* in = &x[size_t{row} * stride];
      const float* q = in + (is_ssd ? values + keys : 0) + key_head * c.key_dim;
      const float* k = in + (is_ssd ? values : keys) + key_head * c.key_dim;
      const float* v = in + (is_ssd ? 0 : 2 * keys) + head * c.value_dim;
      const float* gates = in;
      const double rate_in = softplus(double{gates[op.gate_column + head]} + vectors[c.n_heads + head]);
      double kk = 0, qq = 0;
      for (uint32_t i = 0; i < c.key_dim; ++i) kk += double{k[i]} * k[i], qq += double{q[i]} * q[i];
      const double k_scale = is_ssd ? 1 : 1 / std::sqrt(kk + 1e-6);
      const double q_scale = is_ssd ? 1 : 1 / std::sqrt(qq + 1e-6) / std::sqrt(double{1} * c.key_dim);
      const double decay = std::exp(vectors[head] * rate_in);
      const double rate = is_ssd ? rate_in : 1 / (1 + std::exp(-double{gates[op.rate_column + head]}));
      for (uint32_t j = 0; j < c.value_dim; ++j) {
        double known = 0, sum = 0;
        for (uint32_t i = 0; i < c.key_dim; ++i) known += decay * s[i * c.value_dim + j] * k[i] * k_scale;
        const double added = is_ssd ? v[j] * rate : (v[j] - known) * rate;
        for (uint32_t i = 0; i < c.key_dim; ++i) {
          double& at = s[i * c.value_dim + j];
          at = decay * at + added * k[i] * k_scale;
          sum += at * q[i] * q_scale;
        }
        if (is_ssd) sum += double{vectors[2 * c.n_heads + head]} * v[j];
        y[size_t{row} * values + head * c.value_dim + j] = sum;
      }
    }
  }
  return y;
}

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
  const std::vector<double> want = oracle(c, shape_op, x, vectors, stride);
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
  for_each_variant("scan", scan_variants(), [&](const Policy& policy) {
    EXPECT_LT(rel_l2(run_chunks(policy, shape, x, {11, 1, 9}, 11, record_steps), want), 1e-5);
    EXPECT_LT(
        rel_l2(run_chunks(policy, shape, x, std::vector<uint32_t>(kRowCount, 1), 1, record_steps), want),
        1e-5);
    EXPECT_LT(rel_l2(run_slots(policy, shape, x, 13, kRowCount, record_steps), want), 1e-5);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, ScanTest,
                         ::testing::Values(Case{ScanRule::kGatedDelta, 4, 2, 32, 40},
                                           Case{ScanRule::kGatedDelta, 4, 2, 128, 32, true},
                                           Case{ScanRule::kMamba2, 6, 3, 10, 12},
                                           Case{ScanRule::kMamba2, 2, 1, 256, 64}));

}  // namespace
}  // namespace doppler::kernels::testing
