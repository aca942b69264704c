// The most that a picture of a family takes.
#include <algorithm>

#include "images/prepared_image.h"

namespace doppler::images {

uint32_t most_tile_tokens(const ImageRules& rules) {
  const Size& tile = rules.size.pixels() != 0 ? rules.size : rules.crop;
  return tile.pixels() != 0 ? rules.tokens(tile) : most_tokens(rules);
}

uint32_t most_tokens(const ImageRules& rules) {
  const uint64_t edge = uint64_t{rules.patch} * rules.block;
  const auto tokens_of = [&](uint64_t pixels) { return pixels / (edge * edge); };
  uint64_t tiles = rules.most_tiles;
  if (rules.splits && rules.longest_edge != 0 && rules.tile_edge != 0) {
    const uint64_t along = (rules.longest_edge + rules.tile_edge - 1) / rules.tile_edge;
    tiles = along * along;
  }
  if (rules.family->pans_and_scans) tiles = rules.pan_and_scan.most_crops;
  const uint64_t tile =
      std::max({rules.size.pixels(), rules.crop.pixels(), uint64_t{rules.tile_edge} * rules.tile_edge});
  const uint64_t longest = rules.tile_edge == 0 ? (rules.longest_edge + edge - 1) / edge : 0;
  const uint64_t whole =
      std::max({tokens_of(rules.most_pixels), longest * longest, uint64_t{rules.most_tokens}});
  return static_cast<uint32_t>(std::min<uint64_t>(whole + (tiles + 1) * tokens_of(tile), kMostTokens));
}

bool limit_patches(ImageRules& rules, uint32_t patches) {
  const uint64_t pixels = uint64_t{patches} * rules.patch * rules.patch;
  if (rules.most_pixels <= pixels) return false;
  rules.most_pixels = pixels;
  rules.least_pixels = std::min(rules.least_pixels, pixels);
  return true;
}

}  // namespace doppler::images
