// The common properties of the layers of persistent_layers.wgsl: formats, parts and options. Layers that differ are
// refused by name.
#pragma once

#include <cstdint>

#include "kernels/persistent/layers.h"

namespace doppler::kernels {

// The parts that every layer has or none.
struct PersistentParts {
  bool qkv_bias = false, out_bias = false, gate_up_bias = false, down_bias = false;
  bool qk_norms = false, post_norms = false;

  bool operator==(const PersistentParts&) const = default;
};

// Row counts of the parts of q, k and v: one part, or two; both where layers differ.
struct PersistentShape {
  uint32_t qkv_rows = 0;    // of all three
  uint32_t first_rows = 0;  // of the first of two parts; 0: no layer has two
  bool has_two_parts = false;
  bool has_sliding = false;  // some layer
  WeightFormat format = WeightFormat::kTileQ4, other = WeightFormat::kTileQ4;
  PersistentParts parts;
};
// Error: a sentence that says which layer does not fit.
Result<PersistentShape> persistent_shape(const PersistentLayers& op);

}  // namespace doppler::kernels
