// Norms that one product defers to the next (DeferredNorm), and norms that their reader makes whole (AddRmsNorm),
// against RMSNorm and product in double precision; both ends in one plan, as a layer records them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <numbers>

#include "kernels/linear/pair_check.h"
#include "kernels/linear/record_linear.h"
#include "kernels/linear/test_weights.h"
#include "kernels/testing/q8_check.h"
#include "kernels/tuning.h"

namespace doppler::kernels::testing {
namespace {

constexpr float kEps = 1e-5f;

// The norm's output as the reader sees it: through 8-bit blocks of x * weight where it reads those.
std::vector<float> normed(const std::vector<double>& x, const std::vector<float>& weight, bool q8) {
  double squares = 0;
  std::vector<float> h(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    squares += x[i] * x[i];
    h[i] = static_cast<float>(x[i] * weight[i]);
  }
  if (q8) h = through_q8(h);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + kEps);
  for (float& value : h) value = static_cast<float>(value * factor);
  return h;
}

// Every tile product of this shape with these constants instead of the table's.
void tune(Policy& policy, WeightFormat format, uint32_t n, uint32_t k,
          std::map<std::string, uint32_t> constants) {
  auto table =
      policy.tuning ? std::make_shared<TuningTable>(*policy.tuning) : std::make_shared<TuningTable>();
  const std::string operation = policy.forced.begin()->first;
  TunedChoice choice{.variant = policy.forced.begin()->second};
  choice.constants.insert(constants.begin(), constants.end());
  table->choices[{operation, format_text("%s %ux%u", weight_format_info(format).name, n, k)}] = choice;
  policy.tuning = std::move(table);
}

struct Shape {
  uint32_t rows, depth;
};

class DeferredNormTest : public ::testing::TestWithParam<WeightFormat> {
 protected:
  void expect_finished(ActivationFn gate, std::initializer_list<Shape> shapes);
};

// x += W1 a (defers the norm), y = W2 norm(x) or its gated form (finish it).
void DeferredNormTest::expect_finished(ActivationFn gate, std::initializer_list<Shape> shapes) {
  constexpr uint32_t kHidden = 288, kIn = 160;
  const bool quantised = weight_format_info(GetParam()).quantised();
  for (const bool q8 : {false, true}) {
    if (q8 && !quantised) continue;
    for (const auto& [rows, depth] : shapes) {
      SCOPED_TRACE(
          format_text("q8 %d, gate %d, rows %u, depth %u", q8, gate != ActivationFn::kNone, rows, depth));
      const uint32_t n = 128;
      Policy policy = forced_matvec(GetParam(), q8 ? ".dp4a.tile" : ".tile");
      tune(policy, GetParam(), kHidden, kIn, {{"rows", rows}, {"depth", depth}, {"slices", 2}});
      tune(policy, GetParam(), n, kHidden, {{"rows", rows}, {"depth", depth}, {"slices", 1}});
      const TestWeight first = random_weight(GetParam(), kHidden, kIn, 1);
      const TestWeight second = random_weight(GetParam(), n, kHidden, 2);
      const std::vector<float> a = random_floats(kIn, 3), before = random_floats(kHidden, 4, 3.0f),
                               norm_weight = random_floats(kHidden, 5), bias = random_floats(kHidden, 6);
      KernelRun run(policy, 1);
      const Weight w1 = upload(run, first), w2 = upload(run, second);
      const TensorView x = run.inout(before);
      const DeferredNorm next{.buffer = run.output(DeferredNorm::bytes(kHidden, q8)),
                              .weight = run.input(norm_weight),
                              .k = kHidden,
                              .eps = kEps,
                              .q8 = q8};
      const uint32_t outputs = gate == ActivationFn::kNone ? n : n / 2;
      const TensorView y = run.output(outputs * 4), y_q8 = run.output(q8_bytes(1, outputs));
      const TensorView a_view = run.input(a), bias_view = run.input(bias);
      ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
        EXPECT_EQ(epilogue_refusal(ctx, w1, EpilogueKind::kDeferredNorm), "");
        EXPECT_EQ(prologue_refusal(ctx, w2, PrologueKind::kDeferredNorm, gate), "");
        DP_CHECK(record_linear(ctx, Linear{.weight = w1,
                                           .x = Rows{.f32 = a_view},
                                           .bias = bias_view,
                                           .y = AddResidualDeferNorm{.y = x, .norm = next}}));
        Epilogue end = Store{.y = y};
        if (gate != ActivationFn::kNone) end = Gate{.activation = gate, .y = {.f32 = y, .q8 = y_q8}};
        return record_linear(ctx, Linear{.weight = w2, .x = next, .y = end});
      }));
      run.replay();

      std::vector<double> sum = product(first, q8 ? through_q8(a) : a, 1);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += before[i] + bias[i];
      EXPECT_LT(rel_l2(run.read<float>(x, kHidden), sum), 1e-5);
      std::vector<double> want = product(second, normed(sum, norm_weight, q8), 1);
      if (gate != ActivationFn::kNone) {
        for (size_t i = 0; i < outputs; ++i) want[i] = want[i] / (1 + std::exp(-want[i])) * want[outputs + i];
        want.resize(outputs);
      }
      const std::vector<float> got = run.read<float>(y, outputs);
      // x sums in f32, so a code of the blocks may fall on the other side of a tie: then 1 of 127.
      EXPECT_LT(rel_l2(got, want), q8 ? 2e-3 : 1e-5);
      if (gate != ActivationFn::kNone) {
        expect_q8(run.read<uint8_t>(y_q8, q8_bytes(1, outputs)), got, 1, 1, outputs);
      }
    }
  }
}

TEST_P(DeferredNormTest, IsFinishedByTheNextProduct) {
  expect_finished(ActivationFn::kNone, {{.rows = 16, .depth = 4}, {.rows = 32, .depth = 2}});
}
TEST_P(DeferredNormTest, IsFinishedByAGatedProduct) {
  expect_finished(ActivationFn::kSilu, {{.rows = 16, .depth = 2}, {.rows = 32, .depth = 4}});
}

INSTANTIATE_TEST_SUITE_P(Formats, DeferredNormTest,
                         ::testing::Values(WeightFormat::kTileQ4, WeightFormat::kTileQ5,
                                           WeightFormat::kTileQ6, WeightFormat::kTileQ8,
                                           WeightFormat::kTileF16, WeightFormat::kTileBF16),
                         [](const auto& format) {
                           return std::string(weight_format_info(format.param).name);
                         });

// q and k beside v. The first ends with half a tile.
void expect_both_of_one_row(bool has_bias) {
  constexpr uint32_t kK = 256, kRows[] = {1};
  Policy policy = forced_matvec(WeightFormat::kTileQ4, ".dp4a.tile");
  policy.forced.merge(forced_matvec(WeightFormat::kTileQ6, ".dp4a.tile").forced);
  KernelRun run(policy, kRows[0]);
  EXPECT_TRUE(expect_both_products(run, random_weight(WeightFormat::kTileQ4, 80, kK, 1),
                                   random_weight(WeightFormat::kTileQ6, 48, kK, 2), has_bias, kRows));
}

TEST(LinearPair, IsBothProducts) { expect_both_of_one_row(/*has_bias=*/false); }
TEST(LinearPair, HasBothBiases) { expect_both_of_one_row(/*has_bias=*/true); }

double activated(double v, ActivationFn activation) {
  switch (activation) {
    case ActivationFn::kSilu:
      return v / (1 + std::exp(-v));
    case ActivationFn::kGeluTanh:
      return v / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
    case ActivationFn::kGeluErf:
      return v / 2 * (1 + std::erf(v / std::numbers::sqrt2));
    default:
      return v;
  }
}

// The gate of another kernel's values, in f32 and 8 bits: of the sums that the product by itself would store.
class GateOfTest : public ::testing::TestWithParam<ActivationFn> {};

TEST_P(GateOfTest, MultipliesByTheActivatedSums) {
  constexpr uint32_t kK = 256, kN = 96;
  const TestWeight test = random_weight(WeightFormat::kTileQ4, kN, kK, 1);
  KernelRun run(forced_matvec(WeightFormat::kTileQ4, ".dp4a.tile"), 1);
  const Weight weight = upload(run, test);
  const std::vector<float> gated = random_floats(kN, 4);
  const TensorView x = run.input(random_floats(kK, 3)), of = run.input(gated), sums = run.output(kN * 4),
                   y = run.output(kN * 4), y_q8 = run.output(q8_bytes(1, kN));
  ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
    const Rows rows{.f32 = x};
    DP_CHECK(record_linear(ctx, Linear{.weight = weight, .x = rows, .y = Store{.y = sums}}));
    return record_linear(ctx,
                         Linear{.weight = weight,
                                .x = rows,
                                .y = GateOf{.x = of, .y = {.f32 = y, .q8 = y_q8}, .activation = GetParam()}});
  }));
  run.replay();
  std::vector<double> want;
  for (const float sum : run.read<float>(sums, kN)) {
    want.push_back(gated[want.size()] * activated(sum, GetParam()));
  }
  const std::vector<float> got = run.read<float>(y, kN);
  EXPECT_LT(rel_l2(got, want), 1e-6);
  expect_q8(run.read<uint8_t>(y_q8, q8_bytes(1, kN)), got, 1, 1, kN);
}

INSTANTIATE_TEST_SUITE_P(Activations, GateOfTest,
                         ::testing::Values(ActivationFn::kSilu, ActivationFn::kGeluTanh,
                                           ActivationFn::kGeluErf));

// x of a residual and a branch with a norm of its own, then its norm and a product: single, as a pair, and gated.
class AddRmsNormTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kN = 96;

  // h as the reader sees it; x by the way.
  std::vector<float> want_h(uint32_t k) {
    double squares = 0;
    for (const float b : branch_) squares += double{b} * b;
    const double factor = 1 / std::sqrt(squares / k + kEps);
    x_.resize(k);
    for (size_t i = 0; i < k; ++i) x_[i] = residual_[i] + branch_[i] * factor * add_weight_[i];
    return normed(x_, weight_, /*q8=*/true);
  }
  void make_inputs(uint32_t k) {
    residual_ = random_floats(k, 3, 2.0f);
    branch_ = random_floats(k, 4, 5.0f);
    add_weight_ = random_floats(k, 5);
    weight_ = random_floats(k, 6);
  }
  AddRmsNorm upload_inputs(KernelRun& run, uint32_t k) {
    x_view_ = run.output(k * 4);
    return {.residual = run.input(residual_),
            .branch = run.input(branch_),
            .add_weight = run.input(add_weight_),
            .weight = run.input(weight_),
            .x = x_view_,
            .eps = kEps};
  }

  std::vector<float> residual_, branch_, add_weight_, weight_;
  std::vector<double> x_;
  TensorView x_view_;
};

class AddRmsNormFormatTest : public AddRmsNormTest, public ::testing::WithParamInterface<WeightFormat> {};

TEST_P(AddRmsNormFormatTest, IsMadeByItsReader) {
  constexpr uint32_t kK = 96;  // six blocks for sixteen invocations
  make_inputs(kK);
  const TestWeight first = random_weight(GetParam(), kN, kK, 1);
  KernelRun run(forced_matvec(GetParam(), ".dp4a.tile"), 1);
  const Weight w = upload(run, first);
  const AddRmsNorm x = upload_inputs(run, kK);
  const TensorView y = run.output(kN * 4);
  ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
    EXPECT_EQ(prologue_refusal(ctx, w, PrologueKind::kAddRmsNorm), "");
    return record_linear(ctx, Linear{.weight = w, .x = x, .y = Store{.y = y}});
  }));
  run.replay();
  const std::vector<double> want = product(first, want_h(kK), 1);
  EXPECT_LT(rel_l2(run.read<float>(x_view_, kK), x_), 1e-6);
  EXPECT_LT(rel_l2(run.read<float>(y, kN), want), 2e-3);  // a code may fall on the other side of a tie
}

TEST_P(AddRmsNormFormatTest, IsMadeByAGatedReader) {
  constexpr uint32_t kK = 288, kOutputs = 64;
  make_inputs(kK);
  const TestWeight gates = random_weight(GetParam(), 2 * kOutputs, kK, 1);
  KernelRun run(forced_matvec(GetParam(), ".dp4a.tile"), 1);
  const Weight w = upload(run, gates);
  const AddRmsNorm x = upload_inputs(run, kK);
  const TensorView y_q8 = run.output(q8_bytes(1, kOutputs));
  ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
    EXPECT_EQ(prologue_refusal(ctx, w, PrologueKind::kAddRmsNorm, ActivationFn::kSilu), "");
    return record_linear(ctx, Linear{.weight = w, .x = x, .y = Gate{.y = {.q8 = y_q8}}});
  }));
  run.replay();
  const std::vector<double> sums = product(gates, want_h(kK), 1);
  EXPECT_LT(rel_l2(run.read<float>(x_view_, kK), x_), 1e-6);
  std::vector<double> want(kOutputs);
  for (size_t i = 0; i < kOutputs; ++i) want[i] = sums[i] / (1 + std::exp(-sums[i])) * sums[kOutputs + i];
  const std::vector<uint8_t> bytes = run.read<uint8_t>(y_q8, q8_bytes(1, kOutputs));
  std::vector<float> got(kOutputs);
  for (size_t i = 0; i < kOutputs; ++i) {
    float d;
    std::memcpy(&d, &bytes[q8_plane1_offset(1, kOutputs) + i / kQ8Block * 8], 4);
    got[i] = d * static_cast<int8_t>(bytes[i]);
  }
  EXPECT_LT(rel_l2(got, want), 1e-2);  // 8 bits
}

TEST_F(AddRmsNormTest, IsMadeByAPair) {
  constexpr uint32_t kK = 288, kSecond = 64;
  constexpr WeightFormat kQ4 = WeightFormat::kTileQ4, kQ6 = WeightFormat::kTileQ6;
  make_inputs(kK);
  const TestWeight first = random_weight(kQ4, kN, kK, 1), second = random_weight(kQ6, kSecond, kK, 2);
  Policy policy = forced_matvec(kQ4, ".dp4a.tile");
  policy.forced.merge(forced_matvec(kQ6, ".dp4a.tile").forced);
  KernelRun run(policy, 1);
  const Weight w1 = upload(run, first), w2 = upload(run, second);
  const AddRmsNorm x = upload_inputs(run, kK);
  const TensorView y = run.output((kN + kSecond) * 4);
  ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
    EXPECT_EQ(pair_refusal(ctx, w1, w2, {.prologue = PrologueKind::kAddRmsNorm}), "");
    return record_linear(ctx, LinearPair{.first = w1, .second = w2, .x = x, .y = y});
  }));
  run.replay();
  const std::vector<float> h = want_h(kK);
  std::vector<double> want = product(first, h, 1);
  const std::vector<double> rest = product(second, h, 1);
  want.insert(want.end(), rest.begin(), rest.end());
  EXPECT_LT(rel_l2(run.read<float>(x_view_, kK), x_), 1e-6);
  EXPECT_LT(rel_l2(run.read<float>(y, kN + kSecond), want), 2e-3);
}

INSTANTIATE_TEST_SUITE_P(Formats, AddRmsNormFormatTest,
                         ::testing::Values(WeightFormat::kTileQ4, WeightFormat::kTileQ5,
                                           WeightFormat::kTileQ6, WeightFormat::kTileQ8),
                         [](const auto& format) {
                           return std::string(weight_format_info(format.param).name);
                         });

TEST(DeferredNorm, OtherVariantsRefuseIt) {
  const TestWeight test = random_weight(WeightFormat::kTileQ8, 64, 64, 1);
  KernelRun run(forced_matvec(WeightFormat::kTileQ8, ".portable"), 1);
  const Weight weight = upload(run, test);
  const DeferredNorm next{.buffer = run.output(DeferredNorm::bytes(64, false)),
                          .weight = run.input(random_floats(64, 1)),
                          .k = 64};
  const Linear op{.weight = weight, .x = next, .y = Store{.y = run.output(256)}};
  const Result<void> recorded = run.try_record([&](Context& ctx) { return record_linear(ctx, op); });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(
      recorded.error().sentence(),
      "matvec.tile_q8.portable does not have the prologue or epilogue of test: matvec.tile_q8.portable is "
      "no product of one row in tiles.");
}

// The form of a deferred norm is its producer's: f32 becomes 8 bits for a reader that takes those, but not the reverse.
TEST(DeferredNorm, IsQuantisedForAReaderOf8Bits) {
  constexpr uint32_t kK = 96, kN = 64;
  const TestWeight test = random_weight(WeightFormat::kTileQ8, kN, kK, 1);
  const std::vector<float> x = random_floats(kK, 2);
  std::vector<float> buffer(DeferredNorm::bytes(kK, false) / 4);
  std::ranges::copy(x, buffer.begin());
  for (uint32_t i = 0; i < kK; ++i) {
    buffer[DeferredNorm::sums_offset(kK, false) / 4 + i / kQ8Block] += x[i] * x[i];
  }
  KernelRun run(forced_matvec(WeightFormat::kTileQ8, ".dp4a.tile"), 1);
  const Weight weight = upload(run, test);
  DeferredNorm norm{.buffer = run.input(buffer), .weight = {}, .k = kK, .eps = kEps, .q8 = false};
  const TensorView y = run.output(kN * 4);
  const Linear op{.weight = weight, .x = norm, .y = Store{.y = y}};
  ASSERT_TRUE(run.record([&](Context& ctx) { return record_linear(ctx, op); }));
  run.replay();
  const std::vector<double> want =
      product(test, normed({x.begin(), x.end()}, std::vector<float>(kK, 1.0f), /*q8=*/true), 1);
  EXPECT_LT(rel_l2(run.read<float>(y, kN), want), 1e-5);

  KernelRun other(forced_matvec(WeightFormat::kTileQ8, ".tile"), 1);
  const Weight again = upload(other, test);
  norm.buffer = other.input(buffer);
  norm.q8 = true;
  const Result<void> recorded = other.try_record([&](Context& ctx) {
    return record_linear(ctx, Linear{.weight = again, .x = norm, .y = Store{.y = norm.buffer}});
  });
  ASSERT_FALSE(recorded);
  EXPECT_NE(recorded.error().sentence().find("x of test"), std::string::npos) << recorded.error().sentence();
}

}  // namespace
}  // namespace doppler::kernels::testing
