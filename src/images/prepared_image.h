// A picture as a model's tower reads it: tiles by the family's rules, and from them the values of patches.
// Read next: model/image_encoder.h.
#pragma once

#include <array>
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

// Errors: those of the shape, or a picture without pixels.
Result<PreparedImage> prepare_image(const ImageRules& rules, const Picture& picture);
inline constexpr uint32_t kMostTokens = 1 << 16;

// The value of each byte of each channel, normalised in float32 as the references do it. The towers of some families
// read other values than their processors give.
enum class ValuesOf : uint8_t { kProcessor, kTower };
using Levels = std::array<std::array<float, 256>, kChannels>;
Levels levels_of(const ImageRules& rules, ValuesOf values);
// The place of each patch of a tile in its grid, in the order in which the tower reads them: patches come in blocks of
// rules.block squared, which become a token, block by block, in each block row by row.
std::vector<PatchPlace> patch_places(const ImageRules& rules, Size tile);

// A tile's values in the order of the family's own processor, without its padding: patches as above, patches row by
// row, or planes [3, height, width].
std::vector<float> processor_values(const ImageRules& rules, const Picture& tile);

}  // namespace doppler::images
