// A picture as a model's tower reads it: tiles by the family's rules, and from them the values of patches.
// Read next: model/image_encoder.h.
#pragma once

#include <span>

#include "base/patch_place.h"
#include "images/image_rules.h"

namespace doppler::images {

// The sizes of that.
struct ImageShape {
  std::vector<Size> tiles;
  uint32_t columns = 0, rows = 0;  // as TilePlan has them
  uint32_t tokens = 0;             // of all tiles
};
// Errors: those of the plan; more than kMostTokens tokens.
Result<ImageShape> shape_of(const ImageRules& rules, Size picture);

struct PreparedImage {
  ImageShape shape;
  std::vector<Picture> tiles;
  uint32_t tokens() const { return shape.tokens; }

  // Everything that the tower's result depends on, besides the model.
  std::vector<uint8_t> key_bytes() const;
};

// Errors: those of the shape; a picture without pixels.
Result<PreparedImage> prepare_image(const ImageRules& rules, const Picture& picture);
inline constexpr uint32_t kMostTokens = 1 << 16;

// [patches, rules.patch_values()], normalised. Patches come in blocks of rules.block squared, which become a token:
// block by block, in each of them row by row. `out` has exactly these values.
void write_patches(const ImageRules& rules, const Picture& tile, std::span<float> out);
// The place of each patch of a tile in its grid, in the same order.
std::vector<PatchPlace> patch_places(const ImageRules& rules, Size tile);

// A tile's values in the order of the family's own processor, without its padding: patches as above, patches row by row,
// or planes [3, height, width].
std::vector<float> processor_values(const ImageRules& rules, const Picture& tile);

}  // namespace doppler::images
