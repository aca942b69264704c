// Checks an activation's f16 form (common/forms.h) against its f32 form.
#pragma once

#include <cstdint>
#include <span>

namespace doppler::kernels::testing {

// `halves`: all of f16; `f32`: the first `rows` rows of k values. Reports to GoogleTest.
void expect_f16(std::span<const uint16_t> halves, std::span<const float> f32, uint32_t rows, uint32_t k);

}  // namespace doppler::kernels::testing
