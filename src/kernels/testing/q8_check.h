// Checks an activation's 8-bit form (common/forms.h) against its f32 form.
#pragma once

#include <cstdint>
#include <span>

namespace doppler::kernels::testing {

// `bytes`: all of q8; `f32`: the first `rows` rows of k values. Reports to GoogleTest.
void expect_q8(std::span<const uint8_t> bytes, std::span<const float> f32, uint32_t max_rows, uint32_t rows,
               uint32_t k);

}  // namespace doppler::kernels::testing
