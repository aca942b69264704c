// How towers read a square table of learned positions for a picture of another size: the entries and weights of a patch.
#pragma once

#include "families/families.h"

namespace doppler::families {

struct PositionTable {
  uint32_t side = 0;              // entries of the table, along each axis
  uint32_t rows = 0, columns = 0;  // patches of the picture
};

// The entry of the patch itself, of pictures that have the table's size.
inline constexpr uint32_t kOwnTap = 1;
void own_tap(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps);

// Two neighbours along each axis, whose corners are the table's: Qwen 3-VL.
inline constexpr uint32_t kBilinearTaps = 4;
void bilinear_corner_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps);

// A triangle as wide as a patch is in the table, and at least an entry, around its middle: SigLIP 2. Smaller pictures would
// have wider ones than these: they take as many entries as there is room for.
inline constexpr uint32_t kAntialiasedAxisTaps = 16, kAntialiasedTaps = kAntialiasedAxisTaps * kAntialiasedAxisTaps;
void antialiased_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps);

}  // namespace doppler::families
