// The place of a patch in the grid of a picture's patches.
#pragma once

#include <cstdint>

namespace doppler {

struct PatchPlace {
  uint32_t row = 0, column = 0;
};

}  // namespace doppler
