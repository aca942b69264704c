// Tests add against the sums themselves, which f32 rounds once. Rows after the last must not change.
#include "kernels/add/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

struct Case {
  uint32_t n, rows;  // of 3
};
class AddTest : public ::testing::TestWithParam<Case> {};

TEST_P(AddTest, EveryVariantIsExact) {
  constexpr uint32_t kMaxRows = 3;
  const auto [n, rows] = GetParam();
  const std::vector<float> x = random_floats(size_t{kMaxRows} * n, 1),
                           y = random_floats(size_t{kMaxRows} * n, 2);
  for_each_variant("add", add_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    const Add op{.x = run.input(x), .y = run.input(y), .sum = run.output(uint64_t{kMaxRows} * n * 4), .n = n};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(rows);
    const std::vector<float> sum = run.read<float>(op.sum, uint64_t{rows} * n);
    for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], x[i] + y[i]) << i;
    const std::vector<uint32_t> all = run.read<uint32_t>(op.sum, uint64_t{kMaxRows} * n);
    for (size_t i = size_t{rows} * n; i < all.size(); ++i) ASSERT_EQ(all[i], kPoison) << "row past the last";
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, AddTest, ::testing::Values(Case{1, 1}, Case{1021, 2}, Case{2080, 3}));

}  // namespace
}  // namespace doppler::kernels::testing
