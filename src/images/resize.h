// Resizing as torchvision and Pillow do it on 8-bit pictures: separable filters that widen when they shrink, weights as
// integers, and a rounding to 8 bits between the two axes. Equal to both to the bit (images_test).
#pragma once

#include "images/picture.h"

namespace doppler::images {

enum class Filter : uint8_t { kBilinear, kBicubic, kLanczos };

// The kind says how weights become integers and which axis comes first.
enum class ResizeKind : uint8_t {
  kTorchvision,  // 16-bit weights; columns first
  kPillow,       // 22 fractional bits; rows first in some shapes
};

struct ResizeOptions {
  Filter filter = Filter::kBicubic;
  ResizeKind kind = ResizeKind::kTorchvision;
};

// An axis whose length stays is not touched. Neither size may be 0.
Picture resize(const Picture& picture, Size to, const ResizeOptions& options);

}  // namespace doppler::images
