#include "families/towers/position_taps.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace doppler::families {
namespace {

using AxisTaps = std::array<Tap, 2>;

AxisTaps between_corners(uint32_t at, uint32_t count, uint32_t side) {
  const double place = static_cast<double>(at) * (side - 1) / std::max(count - 1, 1u);
  const auto first = std::min(static_cast<uint32_t>(place), side - 1);
  const double part = place - first;
  return {Tap{first, static_cast<float>(1 - part)},
          Tap{std::min(first + 1, side - 1), static_cast<float>(part)}};
}

// At most kAntialiasedAxisTaps of an axis; the rest has no weight.
std::array<Tap, kAntialiasedAxisTaps> triangle(uint32_t at, uint32_t count, uint32_t side) {
  const double step = static_cast<double>(side) / count, reach = std::max(step, 1.0);
  const double centre = (at + 0.5) * step;
  const auto first = static_cast<uint32_t>(std::max(centre - reach + 0.5, 0.0));
  const uint32_t end =
      std::min({side, static_cast<uint32_t>(centre + reach + 0.5), first + kAntialiasedAxisTaps});
  std::array<double, kAntialiasedAxisTaps> weights = {};
  double sum = 0;
  for (uint32_t i = first; i < end; ++i) {
    weights[i - first] = std::max(1 - std::fabs((i + 0.5 - centre) / reach), 0.0);
    sum += weights[i - first];
  }
  std::array<Tap, kAntialiasedAxisTaps> taps;
  for (uint32_t i = 0; i < taps.size(); ++i) {
    taps[i] = {std::min(first + i, side - 1), static_cast<float>(weights[i] / sum)};
  }
  return taps;
}

// Keys's cubic convolution (1981) at a distance below 2.
double cubic(double distance) {
  constexpr double kSlope = -0.75;
  const double d = std::fabs(distance);
  if (d <= 1) return ((kSlope + 2) * d - (kSlope + 3)) * d * d + 1;
  return ((kSlope * d - 5 * kSlope) * d + 8 * kSlope) * d - 4 * kSlope;
}

std::array<Tap, 4> cubic_neighbours(uint32_t at, uint32_t count, uint32_t side) {
  const double place = (at + 0.5) * side / count - 0.5, below = std::floor(place);
  std::array<Tap, 4> taps;
  for (size_t i = 0; i < taps.size(); ++i) {
    const double entry = below + static_cast<double>(i) - 1;
    taps[i] = {static_cast<uint32_t>(std::clamp(entry, 0.0, side - 1.0)),
               static_cast<float>(cubic(place - entry))};
  }
  return taps;
}

void multiply(std::span<const Tap> rows, std::span<const Tap> columns, uint32_t side,
              std::vector<Tap>& taps) {
  for (const Tap& row : rows) {
    for (const Tap& column : columns) {
      taps.push_back({row.entry * side + column.entry, row.weight * column.weight});
    }
  }
}

}  // namespace

void own_tap(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps) {
  taps.push_back({place.row * table.side + place.column, 1});
}

void class_tap(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps) {
  const uint32_t patches = table.side * table.side;
  taps.push_back({1 + place.row * table.side + place.column, 1});
  taps.push_back({table.entries - 1, table.entries == patches + 3 ? 1.0f : 0.0f});
}

void add_class_row_taps(const PositionTable& table, std::vector<Tap>& taps) {
  taps.push_back({0, 1});
  taps.push_back({table.side * table.side + 1, 1});
}

void antialiased_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps) {
  multiply(triangle(place.row, table.rows, table.side), triangle(place.column, table.columns, table.side),
           table.side, taps);
}

void bicubic_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps) {
  multiply(cubic_neighbours(place.row, table.rows, table.side),
           cubic_neighbours(place.column, table.columns, table.side), table.side, taps);
}

void axis_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps) {
  const uint32_t of_axis = table.entries / 2;
  taps.push_back({std::min(place.column, of_axis - 1), 1});
  taps.push_back({of_axis + std::min(place.row, of_axis - 1), 1});
}

void bilinear_corner_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps) {
  const AxisTaps rows = between_corners(place.row, table.rows, table.side);
  const AxisTaps columns = between_corners(place.column, table.columns, table.side);
  multiply(rows, columns, table.side, taps);
}

}  // namespace doppler::families
