// matvec and matmul in every variant and weight format against double precision; x has outliers, outputs are
// poisoned and guarded. Variants with 8-bit activations are compared with an oracle that rounds x likewise: a
// block whose value lies within an f32 rounding of a tie may round either way there, hence q8 is made here
// and given.
#include <cmath>

#include "kernels/fragment_f16/variants.h"
#include "kernels/linear/product.h"
#include "kernels/linear/record_linear.h"
#include "kernels/linear/test_weights.h"
#include "kernels/quantize_q8/variants.h"
#include "kernels/testing/f16_check.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

constexpr double kBound = 1e-5;        // linear.h
constexpr double kMatrixBound = 3e-5;  // linear.h

struct Case {
  uint32_t n, k;
  uint32_t max_rows = 1, rows = 1;
  uint32_t rows_per_piece = 0;
  bool bias = false, accumulate = false;
  ActivationFn gate = ActivationFn::kNone;
  uint32_t y_stride = 0, y_column = 0;
  bool y_q8 = false;
  ActivationFn activation = ActivationFn::kNone;  // of the sums
};

double activated(ActivationFn gate, double x) {
  if (gate == ActivationFn::kSilu) return x / (1 + std::exp(-x));
  if (gate == ActivationFn::kGeluTanh) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}

// [rows, columns] of what the operation should write.
std::vector<double> oracle(const Case& c, const TestWeight& weight, std::span<const float> x,
                           std::span<const float> bias, std::span<const float> before) {
  std::vector<double> y = product(weight, x, c.rows);
  const uint32_t stride = c.y_stride == 0 ? c.n : c.y_stride;
  for (size_t i = 0; i < y.size(); ++i) {
    if (c.bias) y[i] += bias[i % c.n];
    if (c.accumulate) y[i] += before[i / c.n * stride + c.y_column + i % c.n];
  }
  if (c.activation != ActivationFn::kNone) {
    for (double& value : y) value = activated(c.activation, value);
  }
  if (c.gate == ActivationFn::kNone) return y;
  const size_t half = c.n / 2;
  std::vector<double> gated(c.rows * half);
  for (size_t i = 0; i < gated.size(); ++i) {
    const double* row = &y[i / half * c.n];
    gated[i] = activated(c.gate, row[i % half]) * row[half + i % half];
  }
  return gated;
}

Epilogue epilogue(const Case& c, const Rows& y) {
  if (c.gate != ActivationFn::kNone) return Gate{.activation = c.gate, .y = y};
  if (c.activation != ActivationFn::kNone) return ActivateSums{.activation = c.activation, .y = y};
  if (c.accumulate) return AddResidual{.y = y.f32, .y_stride = c.y_stride, .y_column = c.y_column};
  return Store{.y = y.f32, .y_stride = c.y_stride, .y_column = c.y_column};
}

void run_case(const Case& c, const TestWeight& weight, const ProductRow& row, const Policy& policy) {
  SCOPED_TRACE(format_text("%u x %u, %u of %u rows", c.n, c.k, c.rows, c.max_rows));
  const uint32_t columns = c.gate == ActivationFn::kNone ? c.n : c.n / 2;
  const uint32_t stride = c.y_stride == 0 ? columns : c.y_stride;
  // A gate multiplies the relative error of its sum by the sum: sums of order 1 keep the bound meaningful.
  const bool activates = c.gate != ActivationFn::kNone || c.activation != ActivationFn::kNone;
  const float scale = activates ? 0.05f : 1.0f;
  const std::vector<float> x = random_floats(size_t{c.max_rows} * c.k, 3, scale);
  const std::vector<float> bias = random_floats(c.n, 4);
  const std::vector<float> before = random_floats(size_t{c.max_rows} * stride, 5);

  KernelRun run(policy, c.max_rows);
  const Weight uploaded = upload(run, weight, c.rows_per_piece);
  Rows forms{.f32 = run.inout(before)};
  if (c.y_q8) forms.q8 = run.output(q8_bytes(c.max_rows, columns));
  if (c.y_q8) forms.f16 = run.output(f16_bytes(c.max_rows, columns));
  Linear op{.weight = uploaded, .x = Rows{.f32 = run.input(x)}, .y = epilogue(c, forms)};
  if (c.bias) op.bias = run.input(bias);
  if (!run.record([&](Context& ctx) { return record_linear(ctx, op); })) return;
  run.replay(c.rows);

  const std::vector<double> want = row.f16 ? oracle(c, through_f16(weight), through_f16(x), bias, before)
                                           : oracle(c, weight, row.q8 ? through_q8(x) : x, bias, before);
  const std::vector<float> y = run.read<float>(forms.f32, uint64_t{c.max_rows} * stride);
  std::vector<float> got;
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t in_row = i % stride;
    if (i / stride < c.rows && in_row >= c.y_column && in_row < c.y_column + columns) {
      got.push_back(y[i]);
    } else {
      ASSERT_EQ(y[i], before[i]) << "a value that is not an output, number " << i;
    }
  }
  EXPECT_LT(rel_l2(got, want), row.f16 ? kMatrixBound : kBound);
  if (c.y_q8) {
    expect_f16(run.read<uint16_t>(forms.f16, f16_bytes(c.max_rows, columns) / 2), got, c.rows, columns);
    expect_q8(run.read<uint8_t>(forms.q8, q8_bytes(c.max_rows, columns)), got, c.max_rows, c.rows, columns);
  }
}

class LinearTest : public ::testing::TestWithParam<WeightFormat> {
 protected:
  void run_all(std::initializer_list<Case> cases) {
    for (const Case& c : cases) {
      const TestWeight weight = random_weight(GetParam(), c.n, c.k, 11);
      const ProductShape shape{.format = GetParam(), .n = c.n, .k = c.k, .max_rows = c.max_rows};
      for_each_variant(product_operation(shape), product_variants(shape), [&](const Policy& policy) {
        for (const ProductRow& row : product_variants(shape)) {
          if (row.name == policy.forced.begin()->second) run_case(c, weight, row, policy);
        }
      });
    }
  }
  // Runs only the rows that read x as f16.
  void run_matrix(std::initializer_list<Case> cases) {
    for (const Case& c : cases) {
      const ProductShape shape{.format = GetParam(), .n = c.n, .k = c.k, .max_rows = c.max_rows};
      for (const ProductRow& row : product_variants(shape)) {
        Policy policy;
        policy.forced[product_operation(shape)] = row.name;
        if (!row.f16) continue;
        const std::string reason = refuse(row, shape, device().caps(), policy);
        if (!reason.empty()) return note_refusal(row.name, reason);
        run_case(c, random_weight(GetParam(), c.n, c.k, 11), row, policy);
      }
    }
  }
};

// The reading of x, the counting of rows and the finishing of y differ by the kind of the weights, not by format: one
// of each kind is enough, and of tiles one whose kernels keep fewer units in registers.
class KindsOfWeights : public LinearTest {};
INSTANTIATE_TEST_SUITE_P(Formats, KindsOfWeights,
                         ::testing::Values(WeightFormat::kF32, WeightFormat::kBF16, WeightFormat::kQ8_0,
                                           WeightFormat::kQ4_K, WeightFormat::kTileQ4,
                                           WeightFormat::kTileF16),
                         [](const auto& format) {
                           return std::string(weight_format_info(format.param).name);
                         });

// Whole blocks of 32 and of 256 columns, and rows that do not fill a workgroup.
TEST_P(LinearTest, OneRow) { run_all({{70, 1312}, {33, 2304}}); }

TEST_P(LinearTest, ChunksOfAnyShape) { run_all({{65, 72, 70, 65}, {130, 768, 130, 66}}); }

TEST_P(KindsOfWeights, OneRowOfAnyShape) { run_all({{1, 1}, {333, 72}, {9, 257}, {2, 8448}}); }

TEST_P(KindsOfWeights, OneRowWithEpiloguesInPieces) {
  run_all({{.n = 70, .k = 512, .rows_per_piece = 16, .bias = true},
           {.n = 33, .k = 256, .rows_per_piece = 1, .accumulate = true, .y_stride = 50, .y_column = 9},
           {.n = 33, .k = 100, .bias = true, .accumulate = true}});
}

TEST_P(KindsOfWeights, OneGatedRow) {
  run_all({{.n = 142, .k = 512, .bias = true, .gate = ActivationFn::kSilu},
           {.n = 64, .k = 256, .gate = ActivationFn::kGeluTanh, .y_q8 = true},
           {.n = 66, .k = 100, .gate = ActivationFn::kGeluErf},
           {.n = 64, .k = 256, .rows_per_piece = 40, .gate = ActivationFn::kSilu}});
}

TEST_P(KindsOfWeights, ChunksWithEpilogues) {
  run_all({{.n = 33,
            .k = 256,
            .max_rows = 17,
            .rows = 3,
            .bias = true,
            .accumulate = true,
            .y_stride = 50,
            .y_column = 9},
           {.n = 64,
            .k = 256,
            .max_rows = 17,
            .rows = 7,
            .rows_per_piece = 24,
            .gate = ActivationFn::kSilu,
            .y_q8 = true},
           {.n = 70, .k = 256, .max_rows = 40, .rows = 37, .bias = true, .accumulate = true},
           {.n = 64, .k = 256, .max_rows = 40, .rows = 33, .gate = ActivationFn::kSilu, .y_q8 = true}});
}

// Whole tiles and their edges, every step width (k / 32 divisible by four, two and one), splits of the columns.
TEST_P(LinearTest, ChunksOnMatrixUnits) {
  run_matrix(
      {{.n = 128, .k = 512, .max_rows = 256, .rows = 256},
       {.n = 128, .k = 512, .max_rows = 256, .rows = 256, .accumulate = true},
       {.n = 100, .k = 256, .max_rows = 300, .rows = 290, .bias = true, .accumulate = true},
       {.n = 64, .k = 192, .max_rows = 128, .rows = 128},
       {.n = 96, .k = 96, .max_rows = 70, .rows = 70, .bias = true},
       {.n = 64, .k = 4096, .max_rows = 256, .rows = 200, .accumulate = true, .y_stride = 80, .y_column = 9},
       {.n = 128, .k = 256, .max_rows = 130, .rows = 130, .gate = ActivationFn::kSilu, .y_q8 = true},
       {.n = 192, .k = 512, .max_rows = 300, .rows = 300, .bias = true, .gate = ActivationFn::kGeluTanh}});
}

// With many workgroups, with splits of the columns, and with rows that end within a strip of sums.
TEST_P(LinearTest, SumsActivatedOnMatrixUnits) {
  run_matrix(
      {{.n = 96, .k = 256, .max_rows = 130, .rows = 130, .bias = true, .activation = ActivationFn::kGeluTanh},
       {.n = 4112,
        .k = 256,
        .max_rows = 300,
        .rows = 290,
        .bias = true,
        .y_q8 = false,
        .activation = ActivationFn::kGeluErf},
       {.n = 160, .k = 2304, .max_rows = 70, .rows = 67, .y_q8 = true, .activation = ActivationFn::kSilu}});
}

// One to four tiles of rows, all and few present. Weight rows end within a workgroup and a fragment, and steps of
// columns are not full. With splits of the columns, and without; y smaller than a fragment.
TEST_P(LinearTest, FewTilesOfRowsOnMatrixUnits) {
  run_matrix(
      {{.n = 128, .k = 512, .max_rows = 64, .rows = 64},
       {.n = 200, .k = 1312, .max_rows = 64, .rows = 50, .bias = true, .accumulate = true},
       {.n = 8224, .k = 256, .max_rows = 32, .rows = 32},
       {.n = 8200, .k = 256, .max_rows = 40, .rows = 33, .accumulate = true, .y_stride = 8300, .y_column = 9},
       {.n = 70, .k = 768, .max_rows = 17, .rows = 3, .rows_per_piece = 24, .bias = true},
       {.n = 3, .k = 256, .max_rows = 20, .rows = 20},
       {.n = 128, .k = 256, .max_rows = 48, .rows = 41, .gate = ActivationFn::kSilu, .y_q8 = true},
       {.n = 192, .k = 2304, .max_rows = 16, .rows = 16, .bias = true, .gate = ActivationFn::kGeluTanh},
       {.n = 320, .k = 2304, .max_rows = 16, .rows = 9, .accumulate = true},
       {.n = 33, .k = 128, .max_rows = 12, .rows = 1, .bias = true}});
}

// The smallest and oddest shapes differ by how x is read and rows are counted, not by format: two formats are enough.
class OddChunks : public LinearTest {};
TEST_P(OddChunks, OfAnyShape) { run_all({{1, 1, 2, 1}, {9, 257, 17, 5}, {64, 512, 64, 64}}); }
INSTANTIATE_TEST_SUITE_P(Formats, OddChunks, ::testing::Values(WeightFormat::kF32, WeightFormat::kQ4_K),
                         [](const auto& format) {
                           return std::string(weight_format_info(format.param).name);
                         });

INSTANTIATE_TEST_SUITE_P(Formats, LinearTest, ::testing::ValuesIn(kAllFormats), [](const auto& format) {
  return std::string(weight_format_info(format.param).name);
});

TEST(Linear, TheChoiceSaysWhetherItReads8Bits) {
  for (WeightFormat format : kAllFormats) {
    const TestWeight test = random_weight(format, 4, 256, 1);
    for (const char* lane : {"exact", "fast"}) {
      Result<Policy> policy = make_policy(lane);
      ASSERT_TRUE(policy);
      KernelRun run(*policy, 1);
      const Weight weight = upload(run, test);
      const Linear op{.weight = weight,
                      .x = Rows{.f32 = run.input(random_floats(256, 2))},
                      .y = Store{.y = run.output(16)}};
      bool says = false;
      ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
        DP_TRY(const ProductChoice choice, resolve_product(ctx, weight));
        says = choice.reads() == InputForm::kQ8;
        return record(ctx, choice, op);
      }));
      bool reads = false;
      for (const Choice& choice : run.choices()) reads |= choice.variant.find(".dp4a") != std::string::npos;
      EXPECT_EQ(says, reads) << weight_format_info(format).name << " in lane " << lane;
      EXPECT_FALSE(says && std::string_view(lane) == "exact");
    }
  }
}

TEST(Linear, TellsWhatDoesNotFit) {
  const TestWeight test = random_weight(WeightFormat::kQ8_0, 6, 64, 1);
  KernelRun run;
  const Weight weight = upload(run, test);
  const Rows x{.f32 = run.input(random_floats(64, 2))};
  const TensorView y = run.output(24);
  const Linear op{.weight = weight, .x = x, .y = Store{.y = y, .y_stride = 7, .y_column = 2}};
  Result<void> recorded = run.try_record([&](Context& ctx) { return record_linear(ctx, op); });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(), "Columns 2 to 8 do not fit rows of 7.");

  Weight holed = weight;
  holed.pieces[0].first_row = 1;
  const Linear other{.weight = holed, .x = x, .y = Store{.y = y}};
  recorded = run.try_record([&](Context& ctx) { return record_linear(ctx, other); });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(), "A piece of the weight of test holds 6 rows from 1; row 0 is next.");
}

TEST(QuantizeQ8, EveryVariantMatchesTheOracle) {
  constexpr uint32_t kMaxRows = 3;
  for (const uint32_t k : {32u, 96u, 1312u}) {
    std::vector<float> x = random_floats(size_t{kMaxRows} * k, 6);
    std::fill_n(x.begin(), 32, 0.0f);  // a block of zeros
    for_each_variant("quantize_q8", quantize_q8_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      const QuantizeQ8 op{.x = run.input(x), .q8 = run.output(q8_bytes(kMaxRows, k)), .k = k};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(2);
      expect_q8(run.read<uint8_t>(op.q8, q8_bytes(kMaxRows, k)), x, kMaxRows, 2, k);
    });
  }
}

TEST(FragmentF16, EveryVariantMatchesTheOracle) {
  constexpr uint32_t kMaxRows = 19;
  for (const uint32_t k : {16u, 96u, 1312u}) {
    std::vector<float> x = random_floats(size_t{kMaxRows} * k, 6);
    x[1] = 1e6f;
    x[2] = -1e6f;
    for_each_variant("fragment_f16", fragment_f16_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      const FragmentF16 op{.x = run.input(x), .f16 = run.output(f16_bytes(kMaxRows, k)), .k = k};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(18);
      expect_f16(run.read<uint16_t>(op.f16, f16_bytes(kMaxRows, k) / 2), x, 18, k);
    });
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
