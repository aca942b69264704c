// The experts of each row, as they lie in GPU memory: u32 [rows, 2 * n_used]. The first n_used words of a row are ids
// of experts, best first; the others are their weights, the bits of f32.
#pragma once

#include <cstdint>

#include "kernels/context.h"

namespace doppler::kernels {

// More would not fit a workgroup's memory, or the slots of its invocations.
inline constexpr uint32_t kMaxExperts = 512, kMaxUsedExperts = 32;

struct Routes {
  TensorView view;
  uint32_t n_experts = 0, n_used = 0;
  TensorView groups = {};  // of the same rows (group_routes.h); for products that read them

  uint64_t bytes(uint32_t max_rows) const { return uint64_t{max_rows} * 2 * n_used * sizeof(uint32_t); }
};

}  // namespace doppler::kernels
