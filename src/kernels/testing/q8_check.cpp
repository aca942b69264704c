// q8_check.h.
#include "kernels/testing/q8_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/common/forms.h"

namespace doppler::kernels::testing {

void expect_q8(std::span<const uint8_t> bytes, std::span<const float> f32, uint32_t max_rows, uint32_t rows,
               uint32_t k) {
  ASSERT_EQ(bytes.size(), q8_bytes(max_rows, k));
  // Where x / d lies halfway between two integers, the rounding of 127 / max|x| decides: 1e-4 of a step.
  constexpr double kRounding = 0.5 + 1e-4;
  for (uint64_t block = 0; block < uint64_t{rows} * (k / kQ8Block); ++block) {
    float scale[2];
    std::memcpy(scale, &bytes[q8_plane1_offset(max_rows, k) + block * 8], 8);
    double largest = 0;
    for (uint32_t i = 0; i < kQ8Block; ++i)
      largest = std::max(largest, std::fabs(double{f32[block * kQ8Block + i]}));
    ASSERT_NEAR(scale[0], largest / 127, largest * 3e-7 + 1e-42) << "scale of block " << block;
    int sum = 0;
    for (uint32_t i = 0; i < kQ8Block; ++i) {
      const int q = static_cast<int8_t>(bytes[block * kQ8Block + i]);
      sum += q;
      const double exact = largest > 0 ? f32[block * kQ8Block + i] * 127 / largest : 0;
      ASSERT_LE(std::fabs(q - exact), kRounding) << "value " << i << " of block " << block;
    }
    ASSERT_NEAR(scale[1], double{scale[0]} * sum, std::fabs(double{scale[0]} * sum) * 1e-6)
        << "block " << block;
  }
}

}  // namespace doppler::kernels::testing
