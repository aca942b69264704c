// A pair's dispatch beside the two products apart, for kernel tests.
#pragma once

#include "kernels/linear/test_weights.h"

namespace doppler::kernels::testing {

// Records both with random rows of x, and with biases if asked, and expects the same numbers bit for bit with each of
// `rows`. False: the device lacks a variant that the run's policy forces.
bool expect_both_products(KernelRun& run, const TestWeight& first, const TestWeight& second, bool has_bias,
                          std::span<const uint32_t> rows);

}  // namespace doppler::kernels::testing
