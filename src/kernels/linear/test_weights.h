// Random weights of every format for kernel tests: the bytes as they lie in GPU memory (base/dtype.h) and the
// same numbers in double precision, decoded here by other code than the kernels'.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/linear/linear.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {

struct TestWeight {
  WeightFormat format = WeightFormat::kF32;
  uint32_t n = 0, k = 0;
  std::vector<uint8_t> plane0, plane1;  // all rows
  std::vector<double> values;           // [n, k]

  // The buffer of rows [first, first + rows), both planes.
  std::vector<uint8_t> piece(uint32_t first, uint32_t rows) const;
};
TestWeight random_weight(WeightFormat format, uint32_t n, uint32_t k, uint64_t seed);

// Uploads it in pieces of `rows_per_piece` (0: one piece) as inputs of the run.
Weight upload(KernelRun& run, const TestWeight& weight, uint32_t rows_per_piece = 0);

// x as the 8-bit blocks of common/forms.h hold it: rows of k, a multiple of 32.
std::vector<float> through_q8(const std::vector<float>& x);

// The operands of matrix variants: x and the weights rounded to f16.
std::vector<float> through_f16(const std::vector<float>& x);
TestWeight through_f16(const TestWeight& weight);

// y[m, n] = x[m, k] W^T in double precision.
std::vector<double> product(const TestWeight& weight, std::span<const float> x, uint32_t m);

inline constexpr WeightFormat kAllFormats[] = {
    WeightFormat::kF32,     WeightFormat::kF16,     WeightFormat::kBF16,   WeightFormat::kQ8_0,
    WeightFormat::kQ4_0,    WeightFormat::kQ4_K,    WeightFormat::kQ5_K,   WeightFormat::kQ6_K,
    WeightFormat::kTileQ4,  WeightFormat::kTileQ5,  WeightFormat::kTileQ6, WeightFormat::kTileQ8,
    WeightFormat::kTileF16, WeightFormat::kTileBF16};

}  // namespace doppler::kernels::testing
