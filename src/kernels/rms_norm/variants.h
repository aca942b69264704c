// The rows of rms_norm, for record() and for the test that forces each.
#pragma once

#include <span>

#include "gpu/bind_kind.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/variant.h"

namespace doppler::kernels {

struct RmsNormKernel {
  std::string_view entry;
  std::span<const gpu::BindKind> layout;
};
struct NormShape {
  uint32_t n = 0;
};
struct RmsNormRow : Variant<NormShape>, RmsNormKernel {};
std::span<const RmsNormRow> rms_norm_variants();

}  // namespace doppler::kernels
