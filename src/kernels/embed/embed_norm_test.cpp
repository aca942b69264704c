// The input of a step of one row, from a table in every weight format, against double precision: also from a table in
// pieces, with a token outside the table, at the end of a chunk of several rows.
#include <cmath>

#include "kernels/embed/variants.h"
#include "kernels/linear/test_weights.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

constexpr float kEps = 1e-5f;

class EmbedNormTest : public ::testing::TestWithParam<WeightFormat> {};

TEST_P(EmbedNormTest, EveryVariantMatchesTheOracle) {
  struct Case {
    uint32_t vocab, k, rows_per_piece;
    float scale;
    bool q8;
    uint32_t token;
  };
  for (const Case& c :
       {Case{40, 512, 0, 1.0f, true, 39}, Case{70, 1152, 0, 33.9f, true, 3}, Case{7, 256, 3, 1.0f, false, 5},
        Case{40, 20, 0, 22.6f, false, 0}, Case{9, 257, 0, 1.0f, false, 8}, Case{40, 64, 0, 1.0f, true, 40}}) {
    SCOPED_TRACE(format_text("%u columns", c.k));
    const TestWeight table = random_weight(GetParam(), c.vocab, c.k, 8);
    const std::vector<float> norm_weight = random_floats(c.k, 9);
    for_each_variant("embed_norm", embed_norm_variants(), [&](const Policy& policy) {
      constexpr uint32_t kMaxRows = 3;
      KernelRun run(policy, kMaxRows);
      const Weight weight = upload(run, table, c.rows_per_piece);
      const EmbedNorm op{.table = weight,
                         .scale = c.scale,
                         .norm_weight = run.input(norm_weight),
                         .eps = kEps,
                         .x = run.output(c.k * 4),
                         .h = {.buffer = run.output(NormedRow::bytes(c.k)), .k = c.k, .q8 = c.q8},
                         .token = run.input(std::vector<uint32_t>{c.token})};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(kMaxRows);
      const std::vector<float> x = run.read<float>(op.x, c.k);
      double squares = 0;
      for (uint32_t i = 0; i < c.k; ++i) {
        const double want = c.token < c.vocab ? table.values[c.token * c.k + i] * c.scale : 0;
        // q4_k and q5_k subtract two products: an f32 rounding of each.
        ASSERT_NEAR(x[i], want, 2e-7 * (std::fabs(want) + c.scale)) << "column " << i;
        squares += double{x[i]} * x[i];
      }
      std::vector<double> want(c.k);
      const double factor = 1 / std::sqrt(squares / c.k + double{kEps});
      for (uint32_t i = 0; i < c.k; ++i) want[i] = x[i] * factor * norm_weight[i];
      const std::vector<uint8_t> bytes = run.read<uint8_t>(op.h.buffer, NormedRow::bytes(c.k));
      std::vector<float> h(c.k);
      std::memcpy(h.data(), bytes.data() + NormedRow::f32_offset(c.k), h.size() * 4);
      if (c.token < c.vocab) {
        EXPECT_LT(rel_l2(h, want), 1e-6);
      } else {
        EXPECT_EQ(h, std::vector<float>(c.k));
      }
      if (c.q8) expect_q8({bytes.begin(), bytes.begin() + q8_bytes(1, c.k)}, h, 1, 1, c.k);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EmbedNormTest, ::testing::ValuesIn(kAllFormats), [](const auto& format) {
  return std::string(weight_format_info(format.param).name);
});

TEST(EmbedNorm, OneWorkgroupRefusesByName) {
  const TestWeight test = random_weight(WeightFormat::kF16, 8, 64, 1);
  Policy policy;
  policy.forced["embed_norm"] = "embed_norm.row";
  KernelRun run(policy);
  const Weight pieces = upload(run, test, 4);
  const TensorView any = run.input(std::vector<float>(1024));
  const Result<void> recorded = run.try_record([&](Context& ctx) {
    return record(
        ctx, EmbedNorm{
                 .table = pieces, .norm_weight = any, .x = any, .h = {.buffer = any, .k = 64}, .token = any});
  });
  ASSERT_FALSE(recorded);
  EXPECT_NE(recorded.error().sentence().find("the table lies in 2 buffers, and one is bound"),
            std::string::npos)
      << recorded.error().sentence();
}

}  // namespace
}  // namespace doppler::kernels::testing
