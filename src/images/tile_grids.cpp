// Families that cut large pictures in a grid of square tiles, row by row, and add the whole picture after them.
#include <algorithm>
#include <cmath>

#include "images/image_rules.h"
#include "images/tile_plan.h"

namespace doppler::images {
namespace {

struct Grid {
  uint32_t columns = 1, rows = 1;
};

// The grid of `least` to `most` tiles whose ratio is nearest to the picture's. Among equals a later one, in the order
// of tiles and then of columns, if the picture has more than half of its pixels.
Grid nearest_grid(Size picture, uint32_t least, uint32_t most, uint32_t tile) {
  const double ratio = static_cast<double>(picture.width) / picture.height;
  Grid best;
  double smallest = HUGE_VAL;
  for (uint32_t tiles = least; tiles <= most; ++tiles) {
    for (uint32_t columns = 1; columns <= tiles; ++columns) {
      if (tiles % columns != 0) continue;
      const Grid grid{columns, tiles / columns};
      const double apart = std::fabs(ratio - static_cast<double>(grid.columns) / grid.rows);
      const double half = 0.5 * tile * tile * tiles;
      if (apart < smallest || (apart == smallest && static_cast<double>(picture.pixels()) > half)) {
        smallest = apart;
        best = grid;
      }
    }
  }
  return best;
}

// The stage `source` has the size of the grid.
void add_tiles(TilePlan& plan, uint32_t source, Grid grid, uint32_t edge) {
  for (uint32_t row = 0; row < grid.rows; ++row) {
    for (uint32_t column = 0; column < grid.columns; ++column) {
      plan.stages.push_back({.source = source,
                             .part = {column * edge, row * edge, {edge, edge}},
                             .size = {edge, edge},
                             .is_tile = true});
    }
  }
  plan.columns = grid.columns;
  plan.rows = grid.rows;
}

uint32_t up_to_multiple(uint32_t x, uint32_t of) { return (x + of - 1) / of * of; }

// The longer edge to `longest`, the other in proportion and even.
Size to_longest(Size picture, uint32_t longest) {
  const double ratio = static_cast<double>(picture.width) / picture.height;
  const auto even = [](double edge) {
    const auto whole = static_cast<uint32_t>(edge);
    return std::max(1u, whole + whole % 2);
  };
  if (picture.width >= picture.height) return {longest, even(longest / ratio)};
  return {even(longest * ratio), longest};
}

}  // namespace

Result<TilePlan> plan_idefics(const ImageRules& rules, Size picture) {
  const uint32_t edge = rules.tile_edge;
  const Size square{edge, edge};
  const Size first = to_longest(picture, rules.longest_edge);
  TilePlan plan{.stages = {{.part = {.size = picture}, .size = first}}};
  if (!rules.splits) {
    plan.stages.push_back({.source = 0, .part = {.size = first}, .size = square, .is_tile = true});
    return plan;
  }
  const double ratio = static_cast<double>(first.width) / first.height;
  Size cut;
  if (first.width >= first.height) {
    cut.width = up_to_multiple(first.width, edge);
    cut.height = up_to_multiple(static_cast<uint32_t>(cut.width / ratio), edge);
  } else {
    cut.height = up_to_multiple(first.height, edge);
    cut.width = up_to_multiple(static_cast<uint32_t>(cut.height * ratio), edge);
  }
  const bool is_cut = cut.width > edge || cut.height > edge;
  plan.stages.push_back({.source = 0, .part = {.size = first}, .size = cut, .is_tile = !is_cut});
  if (!is_cut) return plan;
  add_tiles(plan, 1, {cut.width / edge, cut.height / edge}, edge);
  plan.stages.push_back({.source = 1, .part = {.size = cut}, .size = square, .is_tile = true});
  return plan;
}

Result<TilePlan> plan_lfm2(const ImageRules& rules, Size picture) {
  const uint32_t factor = rules.patch * rules.block;
  const Stage overview{
      .part = {.size = picture},
      .size = within_limits(rules, picture.height, picture.width, {.factor = factor, .least = factor}),
      .is_tile = true};
  TilePlan plan{.stages = {overview}};
  const auto near = [&](uint32_t edge) {
    return std::max<double>(rules.patch, std::nearbyint(static_cast<double>(edge) / factor) * factor);
  };
  const double limit = static_cast<double>(rules.most_pixels) * rules.tolerance;
  if (!rules.splits || near(picture.width) * near(picture.height) <= limit) return plan;
  const Grid grid = nearest_grid(picture, rules.least_tiles, rules.most_tiles, rules.tile_edge);
  plan.stages = {
      {.part = {.size = picture}, .size = {grid.columns * rules.tile_edge, grid.rows * rules.tile_edge}}};
  add_tiles(plan, 0, grid, rules.tile_edge);
  plan.stages.push_back(overview);
  return plan;
}

Result<TilePlan> plan_internvl(const ImageRules& rules, Size picture) {
  const uint32_t edge = rules.tile_edge;
  const Grid grid = nearest_grid(picture, rules.least_tiles, rules.most_tiles, edge);
  TilePlan plan{.stages = {{.part = {.size = picture}, .size = {grid.columns * edge, grid.rows * edge}}}};
  if (grid.columns * grid.rows == 1) {
    plan.stages[0].is_tile = true;
    return plan;
  }
  add_tiles(plan, 0, grid, edge);
  plan.stages.push_back({.part = {.size = picture}, .size = {edge, edge}, .is_tile = true});
  return plan;
}

}  // namespace doppler::images
