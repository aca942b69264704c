// f16_check.h.
#include "kernels/testing/f16_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/half.h"

namespace doppler::kernels::testing {

void expect_f16(std::span<const uint16_t> halves, std::span<const float> f32, uint32_t rows, uint32_t k) {
  constexpr uint32_t kOrder[] = {0, 2, 1, 3};
  constexpr double kLargest = 65504, kHalfStep = 0x1p-11, kLeastStep = 0x1p-24;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t column = 0; column < k; ++column) {
      const size_t tile = size_t{row / 16} * (k / 16) + column / 16;
      const size_t place = column % 16 / 4 * 4 + kOrder[column % 4];
      const double got = f16_to_f32(halves[tile * 256 + row % 16 * 16 + place]);
      const double want = std::clamp(double{f32[size_t{row} * k + column]}, -kLargest, kLargest);
      // Either neighbour where pack2x16float does not round to the nearest.
      ASSERT_LE(std::fabs(got - want), std::max(2 * kHalfStep * std::fabs(want), kLeastStep))
          << "row " << row << ", column " << column;
    }
  }
}

}  // namespace doppler::kernels::testing
