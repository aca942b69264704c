// The WGSL fragments that read and write weights of a format: one row a format, for every kernel.
// linear/weights/README.md lists the declarations of a fragment. Read next: base/dtype.h (the layouts).
#pragma once

#include <string_view>

#include "base/dtype.h"

namespace doppler::kernels {

// Names without extension; empty: there is no such fragment.
struct WeightFragments {
  WeightFormat format;
  std::string_view weight;       // reads weights, and multiplies them with f32
  std::string_view dot = {};     // multiplies them with 8-bit activations; quantised formats
  std::string_view stage = {};   // unpacks them for the matrix units; tile formats
  std::string_view repack = {};  // writes a unit of codes; tile formats of codes (repack/)
};
const WeightFragments& weight_fragments(WeightFormat format);

}  // namespace doppler::kernels
