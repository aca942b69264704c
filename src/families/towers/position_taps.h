// The entries and weights by which towers read a square table of learned positions for a picture of another size.
#pragma once

#include "families/families.h"

namespace doppler::families {

struct PositionTable {
  uint32_t side = 0;               // entries of the table, along each axis
  uint32_t entries = 0;            // in all
  uint32_t rows = 0, columns = 0;  // patches of the picture
};

// The entry of the patch itself, of pictures that have the table's size.
inline constexpr uint32_t kOwnTap = 1;
void own_tap(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps);

// The same of a table with a class token (class_row_tower.cpp): its position comes first. After those of the patches
// come its embedding and, in some towers, the bias of the patches. The class token itself has taps too.
inline constexpr uint32_t kClassTaps = 2;
void class_tap(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps);
void add_class_row_taps(const PositionTable& table, std::vector<Tap>& taps);

// Two neighbours along each axis, whose corners are the table's: Qwen 3-VL.
inline constexpr uint32_t kBilinearTaps = 4;
void bilinear_corner_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps);

// A triangle as wide as a patch is in the table, and at least an entry, around its middle: SigLIP 2. Smaller pictures
// would have wider ones than these: they take as many entries as there is room for.
inline constexpr uint32_t kAntialiasedAxisTaps = 16,
                          kAntialiasedTaps = kAntialiasedAxisTaps * kAntialiasedAxisTaps;
void antialiased_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps);

// Four neighbours along each axis around the patch's middle, by a cubic polynomial: GLM 4V. Neighbours beyond the edge
// are the last entry there.
inline constexpr uint32_t kBicubicTaps = 16;
void bicubic_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps);

// A table for columns, and after it one for rows: Gemma 4.
inline constexpr uint32_t kAxisTaps = 2;
void axis_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps);

}  // namespace doppler::families
