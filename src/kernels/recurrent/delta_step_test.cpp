// Tests delta_step against double precision: a text in steps of one row, by itself and in slots of many sequences; and
// its 8 bits.
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

// A layer of random numbers, and what a text gives.
struct Layer {
  DeltaStep shape_op;
  std::vector<float> x, weight, norm, vectors;
  std::vector<double> want;
  uint64_t conv_floats = 0;
  StepShape shape;

  explicit Layer(const Case& c) : shape_op(delta_step(c)) {
    x = random_floats(size_t{kRowCount} * shape_op.conv.x_stride, 5);
    weight = random_floats(size_t{shape_op.conv.n} * kKernel, 6);
    norm = random_floats(c.value_dim, 7);
    for (uint32_t i = 0; i < c.n_heads; ++i) vectors.push_back(-0.05f - 0.4f * static_cast<float>(i));
    for (uint32_t i = 0; i < c.n_heads; ++i) vectors.push_back(0.3f);
    want = oracle(shape_op, x, weight, vectors, norm);
    // Both states lie in one buffer here: whole bindings.
    conv_floats = ((kKernel - 1ull) * shape_op.conv.n + 63) / 64 * 64;
    shape = {
        .x_columns = shape_op.conv.x_stride,
        .y_columns = shape_op.norm.n,
        .state_floats = conv_floats + shape_op.scan.state_floats(),
        .weights = {weight, vectors, norm},
        .parts = {{(kKernel - 1ull) * shape_op.conv.n, 0}, {shape_op.scan.state_floats(), 2 * conv_floats}}};
  }

  DeltaStep op_of(const StepViews& views) const {
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
  }
};

TEST_P(DeltaStepTest, StepsGiveWhatThreeKernelsWould) {
  const Layer layer(GetParam());
  const uint32_t stride = layer.shape.x_columns, values = layer.shape.y_columns;
  const RecordSteps record_steps = [&](Context& ctx, const StepViews& views) {
    return record(ctx, layer.op_of(views));
  };
  for_each_variant("delta_step", delta_step_variants(), [&](const Policy& policy) {
    const std::vector<uint32_t> ones(kRowCount, 1);
    EXPECT_LT(rel_l2(run_chunks(policy, layer.shape, layer.x, ones, 1, record_steps), layer.want), 1e-5);
    EXPECT_LT(rel_l2(run_chunks(policy, layer.shape, layer.x, ones, 1, record_steps, true), layer.want),
              1e-5);
    EXPECT_LT(rel_l2(run_slots(policy, layer.shape, layer.x, 0, kRowCount, record_steps), layer.want), 1e-5);
    KernelRun run(policy, 1);
    const StepViews views = make_views(run, layer.shape, 1, 1);
    DeltaStep op = layer.op_of(views);
    op.norm.y.q8 = run.output(q8_bytes(1, values));
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.overwrite(views.x, rows_of(layer.x, stride, 0, 1, 1));
    run.replay(1);
    expect_q8(run.read<uint8_t>(op.norm.y.q8, q8_bytes(1, values)), run.read<float>(views.y, values), 1, 1,
              values);
  });
}

// A text in drafting steps: some drafts are right, some wrong, and the last step has no place for a second row.
TEST_P(DeltaStepTest, ADraftingStepLeavesTheStateBehindEachRow) {
  const Layer layer(GetParam());
  const uint32_t stride = layer.shape.x_columns, values = layer.shape.y_columns;
  const std::vector<float> wrong = random_floats(stride, 77);
  for_each_variant("delta_step", delta_step_variants(), [&](const Policy& policy) {
    const std::vector<float> alone =
        run_chunks(policy, layer.shape, layer.x, std::vector<uint32_t>(kRowCount, 1), 1,
                   [&](Context& ctx, const StepViews& views) { return record(ctx, layer.op_of(views)); });
    KernelRun run(policy, 2);
    const StepViews views = make_views(run, layer.shape, 2, 2);
    DeltaStep op = layer.op_of(views);
    op.rows = 2;
    op.norm.y.q8 = run.output(q8_bytes(2, values));
    const auto body = [&](Context& ctx) {
      ctx.drafts = true;
      return record(ctx, op);
    };
    if (!run.record(body)) return;
    uint32_t pos = 0, kept_row = 0;
    for (const bool is_right : {true, false, false, true, true}) {
      SCOPED_TRACE(pos);
      std::vector<float> x = rows_of(layer.x, stride, pos, 2, 2);
      if (!is_right) std::ranges::copy(wrong, x.begin() + stride);
      run.overwrite(views.x, x);
      run.state = {.pos = pos, .kept_row = kept_row};
      run.replay(2);
      const uint32_t counting = is_right ? 2 : 1;
      const std::vector<float> y = run.read<float>(views.y, 2ull * values);
      EXPECT_LT(rel_l2(std::span(y).first(size_t{counting} * values),
                       std::span(layer.want).subspan(size_t{pos} * values, size_t{counting} * values)),
                1e-5);
      // The same sums in the same order as a step of one row: where shaders are compiled alike, the same text.
      EXPECT_LT(rel_l2(std::span(y).first(size_t{counting} * values),
                       std::vector<double>(alone.begin() + ptrdiff_t{pos} * values,
                                           alone.begin() + ptrdiff_t{pos + counting} * values)),
                1e-6);
      expect_q8(run.read<uint8_t>(op.norm.y.q8, q8_bytes(2, values)), y, 2, 2, values);
      pos += counting;
      kept_row = counting - 1;
    }
    ASSERT_EQ(pos, kRowCount - 1);
    // A step of one row in the same plan, after row 1: the grid is of two rows all the same.
    const uint64_t state_floats = 2 * layer.shape.state_floats;
    const std::vector<uint32_t> before = run.read<uint32_t>(views.state, state_floats);
    const std::vector<uint32_t> y_before = run.read<uint32_t>(views.y, 2ull * values);
    run.overwrite(views.x, rows_of(layer.x, stride, pos, 1, 2));
    run.state = {.pos = pos, .kept_row = kept_row};
    run.replay(1);
    const std::vector<float> y = run.read<float>(views.y, values);
    EXPECT_LT(rel_l2(y, std::span(layer.want).subspan(size_t{pos} * values, values)), 1e-5);
    const std::vector<uint32_t> y_after = run.read<uint32_t>(views.y, 2ull * values);
    EXPECT_TRUE(std::equal(y_after.begin() + values, y_after.end(), y_before.begin() + values))
        << "outputs of a row that is not there";
    const std::vector<uint32_t> after = run.read<uint32_t>(views.state, state_floats);
    for (const StatePart& part : layer.shape.parts) {
      EXPECT_FALSE(std::equal(&after[part.begin], &after[part.begin + part.floats], &before[part.begin]));
      EXPECT_TRUE(std::equal(&after[part.begin + part.floats], &after[part.begin + 2 * part.floats],
                             &before[part.begin + part.floats]))
          << "the state behind a row that is not there";
    }
    run.state = {.pos = kRowCount, .stop_reason = kContextFull};
    run.replay(1);
    EXPECT_EQ(run.read<uint32_t>(views.state, state_floats), after) << "a generation that has stopped";
  });
}

TEST(DeltaStep, RowsAreRefusedWhereNoSlotKeepsTheirStates) {
  const Layer layer(Case{4, 2, 20, 32});
  KernelRun run(Policy{}, 2);
  DeltaStep op = layer.op_of(make_views(run, layer.shape, 2, 2));
  const auto reason = [&](uint32_t rows, bool drafts, uint32_t sequences) {
    std::string said;
    EXPECT_TRUE(run.try_record([&](Context& ctx) -> Result<void> {
      op.rows = rows;
      ctx.drafts = drafts;
      ctx.tables.sequences = sequences;
      said = refuse_delta_step(ctx, op);
      return {};
    }));
    return said;
  };
  EXPECT_EQ(reason(1, false, 0), "");
  EXPECT_EQ(reason(1, false, 3), "");
  EXPECT_EQ(reason(2, true, 0), "");
  EXPECT_EQ(reason(2, false, 0), "runs of 2 rows; allowed is 1, and in plans of one sequence that draft 2");
  EXPECT_NE(reason(2, false, 3), "");
  EXPECT_NE(reason(3, true, 0), "");
}

INSTANTIATE_TEST_SUITE_P(Shapes, DeltaStepTest,
                         ::testing::Values(Case{4, 2, 20, 32}, Case{4, 2, 128, 32, true}));

}  // namespace
}  // namespace doppler::kernels::testing
