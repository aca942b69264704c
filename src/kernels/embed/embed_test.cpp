// The embedding gather in every weight format against double precision, also from a table in pieces, with
// tokens outside the table, and with rows past the step's untouched.
#include <bit>
#include <cmath>

#include "kernels/embed/variants.h"
#include "kernels/linear/test_weights.h"

namespace doppler::kernels::testing {
namespace {

class EmbedTest : public ::testing::TestWithParam<WeightFormat> {};

TEST_P(EmbedTest, EveryVariantMatchesTheOracle) {
  struct Case {
    uint32_t vocab, k, rows_per_piece;
    float scale;
  };
  constexpr uint32_t kMaxRows = 6, kUsed = 5;
  for (const Case& c : {Case{40, 512, 0, 1.0f}, Case{7, 257, 3, 1.0f}, Case{40, 18, 16, 22.6f}}) {
    const TestWeight table = random_weight(GetParam(), c.vocab, c.k, 8);
    const std::vector<uint32_t> tokens = {c.vocab - 1, 0, 3, c.vocab, 0xFFFFFFFFu, 1};
    for_each_variant("embed", embed_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      const Weight weight = upload(run, table, c.rows_per_piece);
      const Embed op{.table = weight,
                     .tokens = run.input(tokens),
                     .y = run.output(uint64_t{kMaxRows} * c.k * 4),
                     .scale = c.scale};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(kUsed);
      const std::vector<float> y = run.read<float>(op.y, uint64_t{kMaxRows} * c.k);
      for (size_t i = 0; i < y.size(); ++i) {
        const uint32_t token = tokens[i / c.k];
        if (i >= kUsed * c.k) {
          ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), kPoison) << "row past the last";
          continue;
        }
        const double want = token < c.vocab ? table.values[token * c.k + i % c.k] * c.scale : 0;
        // q4_k and q5_k subtract two products: an f32 rounding of each.
        ASSERT_NEAR(y[i], want, 2e-7 * (std::fabs(want) + c.scale))
            << "row " << i / c.k << " column " << i % c.k;
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EmbedTest, ::testing::ValuesIn(kAllFormats), [](const auto& format) {
  return std::string(weight_format_info(format.param).name);
});

}  // namespace
}  // namespace doppler::kernels::testing
