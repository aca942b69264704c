// The numbers by which a family's preprocessor changes a picture. preprocessor_config.json, processor_config.json and
// config.json say them. A number that matters and is missing is an error that names it.
// A family is a row of image_rules.cpp: how its numbers are read, and how a picture is cut (tile_plan.h).
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"
#include "images/resize.h"
#include "images/tile_plan.h"

namespace doppler::images {

struct RuleSources {
  const Json& config;        // config.json
  const Json& preprocessor;  // preprocessor_config.json, or the image processor of processor_config.json
  const Json& processor;     // processor_config.json; null: there is none
};

// The order of a patch's values in the tower's patch embedding.
enum class PatchValues : uint8_t {
  kChannelsFirst,  // channel, copy, y, x
  kChannelsLast,   // y, x, channel
};

struct ImageFamily;

struct ImageRules {
  const ImageFamily* family = nullptr;
  ResizeOptions resize;
  std::array<double, 3> mean = {}, deviation = {1, 1, 1};  // of values from 0 to 1
  uint32_t patch = 0;                                      // edge of a patch
  uint32_t block = 1;                                      // patches of a token, along each axis
  uint32_t copies = 1;                                     // of a picture along time, in each patch
  // A family has some of these numbers; its plan in tile_plan.h reads them.
  uint64_t least_pixels = 0, most_pixels = 0;
  Size size, crop;
  uint32_t longest_edge = 0, shortest_edge = 0, tile_edge = 0;
  uint32_t least_tiles = 0, most_tiles = 0;
  uint32_t most_tokens = 0;
  double tolerance = 1;  // above most_pixels, before a picture is cut
  bool splits = false;
  // Only some families know pan and scan. The numbers are those of transformers, for files that say none.
  struct PanAndScan {
    bool is_on = false;
    double least_ratio = 1.2;
    uint32_t least_crop = 256, most_crops = 4;
  } pan_and_scan;

  // The number of values of a patch.
  uint32_t patch_values() const { return patch * patch * copies * kChannels; }
  // The number of tokens of a picture of this size, whose edges are whole blocks.
  uint32_t tokens(Size tile) const { return tile.width / (patch * block) * (tile.height / (patch * block)); }
};

struct ImageFamily {
  std::string_view model_type;  // of config.json
  Filter filter = Filter::kBicubic;
  ResizeKind kind = ResizeKind::kTorchvision;
  bool reads_filter = true;  // `resample` says which; else it is always `filter`
  PatchValues values = PatchValues::kChannelsFirst;
  bool is_recentred = false;    // the tower reads 2 x - 1 of the processor's values x
  bool pans_and_scans = false;  // a picture may be cut, if that is asked for (with_pan_and_scan)
  Result<void> (*read)(const RuleSources& sources, ImageRules& rules) = nullptr;
  Result<TilePlan> (*plan)(const ImageRules& rules, Size picture) = nullptr;
};

// Errors: a model type that has no row; a number that is missing or out of bounds.
Result<ImageRules> read_image_rules(const RuleSources& sources);
// The rules of a picture that asks for pan and scan (true) or refuses it (false). Without a value nothing changes.
// Errors: the family does not know pan and scan, and it is asked for.
Result<ImageRules> with_pan_and_scan(const ImageRules& rules, std::optional<bool> asked);
// The tokens of a picture of any size are at most these, with pan and scan too.
uint32_t most_tokens(const ImageRules& rules);
// The tokens of one tile are at most these.
uint32_t most_tile_tokens(const ImageRules& rules);
// Pictures of families that shrink them to a number of pixels have no more patches than this from now on. True: they
// had.
bool limit_patches(ImageRules& rules, uint32_t patches);
// Tells whether a config.json is of a model whose pictures have rules here.
bool has_image_rules(const Json& config);

}  // namespace doppler::images
