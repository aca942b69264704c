// low_rank_down after a deferred norm, against double precision.
#include <algorithm>
#include <cmath>

#include "kernels/low_rank/variants.h"
#include "kernels/testing/f16_check.h"
#include "kernels/testing/kernel_harness.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

// The norm of one row whose division the reader makes, in both of its forms.
TEST(LowRankDeferredTest, DownFinishesTheNorm) {
  constexpr uint32_t kK = 64, kWidth = 4;
  const std::vector<float> x = random_floats(kK, 1), a = random_floats(size_t{kWidth} * kK, 2);
  for (const bool q8 : {false, true}) {
    // Values and sums of squares as the product leaves them. In 8 bits they are small integers, which are exact.
    std::vector<uint32_t> buffer(DeferredNorm::bytes(kK, q8) / 4);
    std::vector<double> values(kK);
    for (uint32_t i = 0; i < kK; ++i) {
      values[i] = q8 ? std::floor(double{x[i]} * 20) : double{x[i]};
      values[i] = std::clamp(values[i], -127.0, 127.0);
    }
    double squares = 0;
    auto* bytes = reinterpret_cast<uint8_t*>(buffer.data());
    for (uint32_t i = 0; i < kK; ++i) {
      const auto value = static_cast<float>(values[i]);
      if (q8) {
        bytes[i] = static_cast<uint8_t>(static_cast<int8_t>(value));
      } else {
        std::memcpy(bytes + i * 4, &value, 4);
      }
    }
    for (uint32_t block = 0; block < kK / kQ8Block; ++block) {
      constexpr float kD = 0.5f;
      if (q8) std::memcpy(bytes + q8_plane1_offset(1, kK) + block * 8, &kD, 4);
      const float sum = 3.0f + static_cast<float>(block);
      squares += double{sum};
      std::memcpy(bytes + DeferredNorm::sums_offset(kK, q8) + block * 4, &sum, 4);
    }
    for_each_variant("low_rank_down", low_rank_down_variants(), [&](const Policy& policy) {
      KernelRun run(policy, 1);
      const DeferredNorm norm{.buffer = run.input(buffer), .k = kK, .eps = 1e-5f, .q8 = q8};
      LowRankDown op{
          .deferred_x = &norm,
          .a = run.input(a),
          .low = run.output(kWidth * 4),
          .k = kK,
          .width = kWidth,
          .slots = 1,
          .adapters = {.adapters = run.input(std::vector<uint32_t>{1, 0}), .state = run.state_view()}};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(1);
      std::vector<double> want(kWidth);
      for (uint32_t j = 0; j < kWidth; ++j) {
        for (uint32_t i = 0; i < kK; ++i) want[j] += double{a[j * kK + i]} * values[i] * (q8 ? 0.5 : 1);
        want[j] /= std::sqrt(squares / kK + 1e-5);
      }
      EXPECT_LT(rel_l2(run.read<float>(op.low, kWidth), want), 1e-5) << q8;
    });
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
