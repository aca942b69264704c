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

// Of an axis: at most kAntialiasedAxisTaps, the rest without weight.
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

void multiply(std::span<const Tap> rows, std::span<const Tap> columns, uint32_t side, std::vector<Tap>& taps) {
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

void antialiased_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps) {
  multiply(triangle(place.row, table.rows, table.side), triangle(place.column, table.columns, table.side),
           table.side, taps);
}

void bilinear_corner_taps(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps) {
  const AxisTaps rows = between_corners(place.row, table.rows, table.side);
  const AxisTaps columns = between_corners(place.column, table.columns, table.side);
  multiply(rows, columns, table.side, taps);
}

}  // namespace doppler::families
