// delta_step against double precision: a text in steps of one row, alone and in slots of many sequences; and its 8 bits.
#include "kernels/recurrent/scan_oracle.h"
#include "kernels/recurrent/test_steps.h"
#include "kernels/recurrent/variants.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

struct Case {
  uint32_t n_heads, n_key_heads, key_dim, value_dim;
  bool is_tiled = false;
};
class DeltaStepTest : public ::testing::TestWithParam<Case> {};

constexpr uint32_t kRowCount = 9, kKernel = 4;
constexpr float kEps = 1e-6f;

double silu(double x) { return x / (1 + std::exp(-x)); }

// Rows hold q, k, v, then z, b and a of each head.
DeltaStep delta_step(const Case& c) {
  DeltaStep op;
  op.scan = {.n_heads = c.n_heads,
             .n_key_heads = c.n_key_heads,
             .is_tiled = c.is_tiled,
             .key_dim = c.key_dim,
             .value_dim = c.value_dim};
  const uint32_t n = op.scan.x_stride(), values = c.n_heads * c.value_dim;
  const uint32_t stride = n + values + 2 * c.n_heads;
  op.scan.gates_stride = stride;
  op.scan.rate_column = n + values;
  op.scan.gate_column = n + values + c.n_heads;
  op.conv = {.x_stride = stride, .n = n, .kernel = kKernel, .activation = ActivationFn::kSilu};
  op.norm = {.gates_stride = stride,
             .gate_column = n,
             .n = values,
             .group = c.value_dim,
             .shares_weight = true,
             .eps = kEps};
  return op;
}

std::vector<double> oracle(const DeltaStep& op, const std::vector<float>& x, const std::vector<float>& weight,
                           const std::vector<float>& vectors, const std::vector<float>& norm) {
  const uint32_t stride = op.conv.x_stride, values = op.norm.n, group = op.norm.group;
  std::vector<float> behind = x;
  for (uint32_t row = 0; row < kRowCount; ++row) {
    for (uint32_t i = 0; i < op.conv.n; ++i) {
      double sum = 0;
      for (uint32_t back = 0; back < kKernel && back <= row; ++back) {
        sum += double{weight[i * kKernel + kKernel - 1 - back]} * x[size_t{row - back} * stride + i];
      }
      behind[size_t{row} * stride + i] = static_cast<float>(silu(sum));
    }
  }
  std::vector<double> y = scan_oracle(op.scan, behind, vectors, stride);
  for (uint32_t row = 0; row < kRowCount; ++row) {
    for (uint32_t first = 0; first < values; first += group) {
      double* head = &y[size_t{row} * values + first];
      double squares = 0;
      for (uint32_t i = 0; i < group; ++i) squares += head[i] * head[i];
      for (uint32_t i = 0; i < group; ++i) {
        head[i] *= norm[i] / std::sqrt(squares / group + kEps) *
                   silu(x[size_t{row} * stride + op.norm.gate_column + first + i]);
      }
    }
  }
  return y;
}

TEST_P(DeltaStepTest, StepsGiveWhatThreeKernelsWould) {
  const Case c = GetParam();
  const DeltaStep shape_op = delta_step(c);
  const uint32_t stride = shape_op.conv.x_stride, values = shape_op.norm.n;
  const std::vector<float> x = random_floats(size_t{kRowCount} * stride, 5),
                           weight = random_floats(size_t{shape_op.conv.n} * kKernel, 6),
                           norm = random_floats(c.value_dim, 7);
  std::vector<float> vectors;
  for (uint32_t i = 0; i < c.n_heads; ++i) vectors.push_back(-0.05f - 0.4f * static_cast<float>(i));
  for (uint32_t i = 0; i < c.n_heads; ++i) vectors.push_back(0.3f);
  const std::vector<double> want = oracle(shape_op, x, weight, vectors, norm);
  // Both states lie in one buffer here: whole bindings.
  const uint64_t conv_floats = ((kKernel - 1ull) * shape_op.conv.n + 63) / 64 * 64;
  const StepShape shape{.x_columns = stride,
                        .y_columns = values,
                        .state_floats = conv_floats + shape_op.scan.state_floats(),
                        .weights = {weight, vectors, norm}};
  const auto op_of = [&](const StepViews& views) {
    DeltaStep op = shape_op;
    const uint64_t slots = views.state.bytes / (shape.state_floats * 4);
    op.conv.x = op.scan.gates = op.norm.gates = views.x;
    op.conv.weight = views.weights[0];
    op.scan.vectors = views.weights[1];
    op.norm.weight = views.weights[2];
    op.conv.state = views.state.sub(0, slots * conv_floats * 4);
    op.scan.state = views.state.sub(slots * conv_floats * 4, slots * op.scan.state_floats() * 4);
    op.norm.y.f32 = views.y;
    return op;
  };
  const RecordSteps record_steps = [&](Context& ctx, const StepViews& views) {
    return record(ctx, op_of(views));
  };
  for_each_variant("delta_step", delta_step_variants(), [&](const Policy& policy) {
    EXPECT_LT(
        rel_l2(run_chunks(policy, shape, x, std::vector<uint32_t>(kRowCount, 1), 1, record_steps), want),
        1e-5);
    EXPECT_LT(rel_l2(run_slots(policy, shape, x, 0, kRowCount, record_steps), want), 1e-5);
    KernelRun run(policy, 1);
    const StepViews views = make_views(run, shape, 1, 1);
    DeltaStep op = op_of(views);
    op.norm.y.q8 = run.output(q8_bytes(1, values));
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.overwrite(views.x, rows_of(x, stride, 0, 1, 1));
    run.replay(1);
    expect_q8(run.read<uint8_t>(op.norm.y.q8, q8_bytes(1, values)), run.read<float>(views.y, values), 1, 1,
              values);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, DeltaStepTest,
                         ::testing::Values(Case{4, 2, 20, 32}, Case{4, 2, 128, 32, true}));

}  // namespace
}  // namespace doppler::kernels::testing
