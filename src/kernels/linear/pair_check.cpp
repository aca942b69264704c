// pair_check.h.
#include "kernels/linear/pair_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/linear/record_linear.h"

namespace doppler::kernels::testing {

bool expect_both_products(KernelRun& run, const TestWeight& first, const TestWeight& second, bool has_bias,
                          std::span<const uint32_t> rows) {
  const uint32_t both = first.n + second.n, most = std::ranges::max(rows);
  const Weight a = upload(run, first), b = upload(run, second);
  const TensorView x = run.input(random_floats(size_t{most} * first.k, 3));
  const TensorView pair = run.output(uint64_t{4} * most * both),
                   apart = run.output(uint64_t{4} * most * both);
  TensorView bias, first_bias, second_bias;
  if (has_bias) {
    const std::vector<float> values = random_floats(both, 4);
    bias = run.input(values);
    first_bias = run.input(std::vector<float>(values.begin(), values.begin() + first.n));
    second_bias = run.input(std::vector<float>(values.begin() + first.n, values.end()));
  }
  const bool recorded = run.record([&](Context& ctx) -> Result<void> {
    const Rows in{.f32 = x};
    EXPECT_EQ(pair_refusal(ctx, a, b, {.has_bias = has_bias}), "");
    DP_CHECK(record_linear(ctx, LinearPair{.first = a, .second = b, .x = in, .bias = bias, .y = pair}));
    DP_CHECK(record_linear(
        ctx, Linear{.weight = a, .x = in, .bias = first_bias, .y = Store{.y = apart, .y_stride = both}}));
    return record_linear(ctx, Linear{.weight = b,
                                     .x = in,
                                     .bias = second_bias,
                                     .y = Store{.y = apart, .y_stride = both, .y_column = first.n}});
  });
  if (!recorded) return false;
  for (const uint32_t count : rows) {
    run.replay(count);
    EXPECT_EQ(run.read<float>(pair, size_t{count} * both), run.read<float>(apart, size_t{count} * both))
        << count << " rows";
  }
  return true;
}

}  // namespace doppler::kernels::testing
