// One picture, resized in one way or cut in a few: all families but those of tile_grids.cpp.
#include "images/tile_plan.h"

#include <algorithm>
#include <cmath>

#include "images/image_rules.h"

namespace doppler::images {
namespace {

constexpr uint32_t kMostRatio = 200;  // of Qwen's pictures

Stage whole(Size picture, Size to) { return {.part = {.size = picture}, .size = to, .is_tile = true}; }

// Half to even, as Python's round().
uint32_t rounded(double x) { return static_cast<uint32_t>(std::nearbyint(x)); }

}  // namespace

Size within_limits(const ImageRules& rules, double height, double width, const Multiples& of) {
  const uint32_t factor = of.factor, frames = of.frames;
  Size to{std::max(of.least, rounded(width / factor) * factor),
          std::max(of.least, rounded(height / factor) * factor)};
  const double pixels = frames * height * width;
  if (frames * to.pixels() > rules.most_pixels) {
    const double shrink = std::sqrt(pixels / static_cast<double>(rules.most_pixels));
    to.height = std::max(factor, static_cast<uint32_t>(std::floor(height / shrink / factor)) * factor);
    to.width = std::max(factor, static_cast<uint32_t>(std::floor(width / shrink / factor)) * factor);
  } else if (frames * to.pixels() < rules.least_pixels) {
    const double grow = std::sqrt(static_cast<double>(rules.least_pixels) / pixels);
    to.height = static_cast<uint32_t>(std::ceil(height * grow / factor)) * factor;
    to.width = static_cast<uint32_t>(std::ceil(width * grow / factor)) * factor;
  }
  return to;
}

namespace {

Result<void> check_ratio(Size picture) {
  const auto [shorter, longer] = std::minmax(picture.width, picture.height);
  if (longer <= uint64_t{kMostRatio} * shorter) return {};
  return fail(ErrorKind::kInvalidInput,
              "A picture has %u x %u pixels; this model takes one edge up to %u times as long as the other.",
              picture.width, picture.height, kMostRatio);
}

}  // namespace

std::vector<Size> TilePlan::tile_sizes() const {
  std::vector<Size> sizes;
  for (const Stage& stage : stages) {
    if (stage.is_tile) sizes.push_back(stage.size);
  }
  return sizes;
}

Result<TilePlan> plan_qwen(const ImageRules& rules, Size picture) {
  DP_CHECK(check_ratio(picture));
  const Size to = within_limits(rules, picture.height, picture.width, {.factor = rules.patch * rules.block});
  return TilePlan{.stages = {whole(picture, to)}};
}

Result<TilePlan> plan_glm(const ImageRules& rules, Size picture) {
  const uint32_t factor = rules.patch * rules.block;
  double height = picture.height, width = picture.width;
  if (picture.height < factor || picture.width < factor) {
    const double grow = std::max(factor / height, factor / width);
    height = std::floor(height * grow);
    width = std::floor(width * grow);
  }
  DP_CHECK(check_ratio({static_cast<uint32_t>(width), static_cast<uint32_t>(height)}));
  const Size to = within_limits(rules, height, width, {.factor = factor, .frames = rules.copies});
  return TilePlan{.stages = {whole(picture, to)}};
}

// The ratio is lost. Pan and scan (Gemma 3) adds crops along the longer edge.
Result<TilePlan> plan_fixed(const ImageRules& rules, Size picture) {
  TilePlan plan{.stages = {whole(picture, rules.size)}};
  const ImageRules::PanAndScan& pan = rules.pan_and_scan;
  const auto [shorter, longer] = std::minmax(picture.width, picture.height);
  const double ratio = static_cast<double>(longer) / shorter;
  if (!pan.is_on || ratio < pan.least_ratio) return plan;
  const uint32_t crops = std::min(
      pan.most_crops, std::max(2u, std::min(static_cast<uint32_t>(ratio + 0.5), longer / pan.least_crop)));
  const uint32_t step = (longer + crops - 1) / crops;
  if (std::min(step, shorter) < pan.least_crop) return plan;
  const bool is_wide = picture.width >= picture.height;
  for (uint32_t i = 0; i < crops && step * i < longer; ++i) {
    const uint32_t first = step * i, length = std::min(step, longer - first);
    const Rect part =
        is_wide ? Rect{first, 0, {length, picture.height}} : Rect{0, first, {picture.width, length}};
    plan.stages.push_back({.part = part, .size = rules.size, .is_tile = true});
  }
  return plan;
}

Result<TilePlan> plan_pixtral(const ImageRules& rules, Size picture) {
  const uint32_t factor = rules.patch * rules.block;
  uint32_t height = picture.height, width = picture.width;
  const double ratio = static_cast<double>(std::max(height, width)) / rules.longest_edge;
  if (ratio > 1) {
    height = static_cast<uint32_t>(std::floor(height / ratio));
    width = static_cast<uint32_t>(std::floor(width / ratio));
  }
  if (height == 0 || width == 0) {
    return fail(ErrorKind::kInvalidInput,
                "A picture of %u x %u pixels has no height or width left at a longest edge of %u.",
                picture.width, picture.height, rules.longest_edge);
  }
  const Size to{(width + factor - 1) / factor * factor, (height + factor - 1) / factor * factor};
  return TilePlan{.stages = {whole(picture, to)}};
}

// The shorter edge to a size, then the middle.
Result<TilePlan> plan_clip(const ImageRules& rules, Size picture) {
  const uint64_t edge = rules.shortest_edge;
  Size to{rules.shortest_edge, rules.shortest_edge};
  if (picture.height <= picture.width) {
    to.width = static_cast<uint32_t>(edge * picture.width / picture.height);
  } else {
    to.height = static_cast<uint32_t>(edge * picture.height / picture.width);
  }
  if (rules.crop.width > to.width || rules.crop.height > to.height) {
    return fail(ErrorKind::kUnsupported, "A crop of %u x %u pixels out of %u x %u asks for padding.",
                rules.crop.width, rules.crop.height, to.width, to.height);
  }
  Stage resized = whole(picture, to);
  resized.is_tile = false;
  const Rect middle{(to.width - rules.crop.width) / 2, (to.height - rules.crop.height) / 2, rules.crop};
  return TilePlan{.stages = {resized, {.source = 0, .part = middle, .size = rules.crop, .is_tile = true}}};
}

// As large as the budget of tokens allows.
Result<TilePlan> plan_gemma4(const ImageRules& rules, Size picture) {
  const uint32_t factor = rules.patch * rules.block;
  const double budget = static_cast<double>(rules.most_tokens) * factor * factor;
  const double grow = std::sqrt(budget / static_cast<double>(picture.pixels()));
  const auto multiple = [&](uint32_t edge) {
    return static_cast<uint32_t>(std::floor(grow * edge / factor)) * factor;
  };
  Size to{multiple(picture.width), multiple(picture.height)};
  const uint32_t most = rules.most_tokens * factor;
  if (to.height == 0) {
    to = {std::min(picture.width / picture.height * factor, most), factor};
  } else if (to.width == 0) {
    to = {factor, std::min(picture.height / picture.width * factor, most)};
  }
  return TilePlan{.stages = {whole(picture, to)}};
}

}  // namespace doppler::images
