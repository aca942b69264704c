// A plan cuts a picture into tiles by a family's rules. It is a list of stages, and the tower reads each tile by
// itself. A plan holds sizes only; prepared_image.h resizes the pixels.
#pragma once

#include <vector>

#include "base/result.h"
#include "images/picture.h"

namespace doppler::images {

struct ImageRules;

// A part of an earlier stage or of the picture, resized.
struct Stage {
  static constexpr uint32_t kPicture = UINT32_MAX;
  uint32_t source = kPicture;  // index of a stage before this one
  Rect part;                   // of the source
  Size size;
  bool is_tile = false;
};

struct TilePlan {
  std::vector<Stage> stages;
  // Tiles of a grid come first, row by row; 0: the picture is not cut. One tile of the whole picture may follow.
  uint32_t columns = 0, rows = 0;
  std::vector<Size> tile_sizes() const;
};

// Multiples near the edges of a picture, whose pixels lie within the limits.
struct Multiples {
  uint32_t factor = 1;
  uint32_t frames = 1;  // pixels are counted so often
  uint32_t least = 0;   // of an edge, before the limits are looked at
};
Size within_limits(const ImageRules& rules, double height, double width, const Multiples& of);

// A row's plans. Errors: a picture that the reference refuses too.
Result<TilePlan> plan_qwen(const ImageRules& rules, Size picture);
Result<TilePlan> plan_glm(const ImageRules& rules, Size picture);
Result<TilePlan> plan_fixed(const ImageRules& rules, Size picture);  // with pan and scan
Result<TilePlan> plan_idefics(const ImageRules& rules, Size picture);
Result<TilePlan> plan_lfm2(const ImageRules& rules, Size picture);
Result<TilePlan> plan_internvl(const ImageRules& rules, Size picture);
Result<TilePlan> plan_pixtral(const ImageRules& rules, Size picture);
Result<TilePlan> plan_clip(const ImageRules& rules, Size picture);
Result<TilePlan> plan_gemma4(const ImageRules& rules, Size picture);

}  // namespace doppler::images
