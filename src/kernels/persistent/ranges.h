// The layers that a dispatch of persistent_layers.wgsl can reach: consecutive ones whose weights, vectors (norms and
// biases), rope tables and caches lie in one buffer each, no further apart than a binding may be long. A model that
// needs several dispatches hands the residual stream from one to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/persistent/layers.h"

namespace doppler::kernels {

// A part of one buffer that holds some views.
struct BufferRange {
  TensorView view;

  // False, and unchanged, if `added` is in another buffer or too far away.
  bool add(TensorView added, uint64_t most_bytes);
  // Where `of` begins, in elements of so many bytes.
  uint32_t place(TensorView of, uint32_t bytes) const {
    return static_cast<uint32_t>((of.offset - view.offset) / bytes);
  }
};

struct LayerRange {
  uint32_t first = 0, count = 0;
  TensorView first_norm;  // what the first layer's input is normalised by
  BufferRange weights, vectors, angles, cache;
};

// Layers that the uniform table of a dispatch has room for.
inline constexpr uint32_t kMostLayersOfDispatch = 400;

// Error: a sentence that says which layer's parts lie too far from one another.
Result<std::vector<LayerRange>> layer_ranges(const PersistentLayers& op, const gpu::Caps& caps);

}  // namespace doppler::kernels
