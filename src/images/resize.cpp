#include "images/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace doppler::images {
namespace {

constexpr uint32_t kPillowBits = 22;
constexpr uint32_t kMostTorchvisionBits = 21;
constexpr double kInt16Limit = 32768;
// Pillow 13 shrinks rows first if the columns grow, or if they shrink and the picture is this much taller than wide.
// The rule is fitted to its results.
constexpr double kPillowTall = 1.54;

double support_of(Filter filter) {
  switch (filter) {
    case Filter::kBilinear:
      return 1;
    case Filter::kBicubic:
      return 2;
    case Filter::kLanczos:
      return 3;
  }
  return 0;
}

double sinc(double x) {
  if (x == 0) return 1;
  const double angle = std::numbers::pi * x;
  return std::sin(angle) / angle;
}

double weight_at(Filter filter, double x) {
  x = std::fabs(x);
  switch (filter) {
    case Filter::kBilinear:
      return std::max(1 - x, 0.0);
    case Filter::kBicubic: {
      constexpr double a = -0.5;
      if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
      return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
    }
    case Filter::kLanczos:
      return x < 3 ? sinc(x) * sinc(x / 3) : 0;
  }
  return 0;
}

// The samples that make one output, and their weights.
struct Taps {
  uint32_t first = 0, count = 0;
  size_t weights = 0;  // where they begin
};

struct Axis {
  std::vector<Taps> taps;
  std::vector<int32_t> weights;
  uint32_t bits = 0;  // fractional
};

Axis make_axis(uint32_t from, uint32_t to, const ResizeOptions& options) {
  const double step = static_cast<double>(from) / to;
  const double widened = std::max(step, 1.0);
  const double reach = support_of(options.filter) * widened;
  Axis axis;
  std::vector<double> exact;
  double highest = 0;
  for (uint32_t i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * step;
    const auto first = static_cast<uint32_t>(std::max(centre - reach + 0.5, 0.0));
    const uint32_t end = std::min(from, static_cast<uint32_t>(centre + reach + 0.5));
    axis.taps.push_back({.first = first, .count = end - first, .weights = exact.size()});
    double sum = 0;
    for (uint32_t j = first; j < end; ++j) {
      exact.push_back(weight_at(options.filter, (j + 0.5 - centre) / widened));
      sum += exact.back();
    }
    for (size_t j = axis.taps.back().weights; j < exact.size(); ++j) {
      exact[j] /= sum;
      highest = std::max(highest, exact[j]);
    }
  }
  axis.bits = kPillowBits;
  if (options.kind == ResizeKind::kTorchvision) {
    axis.bits = 0;
    while (axis.bits < kMostTorchvisionBits &&
           std::floor(0.5 + highest * std::ldexp(1.0, static_cast<int>(axis.bits) + 1)) < kInt16Limit) {
      ++axis.bits;
    }
  }
  const double one = std::ldexp(1.0, static_cast<int>(axis.bits));
  axis.weights.reserve(exact.size());
  for (const double weight : exact) {
    axis.weights.push_back(static_cast<int32_t>(weight * one + (weight < 0 ? -0.5 : 0.5)));
  }
  return axis;
}

uint8_t rounded(int64_t sum, uint32_t bits) {
  const int64_t half = bits == 0 ? 0 : int64_t{1} << (bits - 1);
  return static_cast<uint8_t>(std::clamp<int64_t>((sum + half) >> bits, 0, 255));
}

Picture resize_columns(const Picture& picture, uint32_t width, const ResizeOptions& options) {
  const Axis axis = make_axis(picture.size.width, width, options);
  Picture out = Picture::of({width, picture.size.height});
  for (uint32_t y = 0; y < out.size.height; ++y) {
    const uint8_t* from = picture.row(y);
    uint8_t* to = out.row(y);
    for (uint32_t x = 0; x < width; ++x, to += kChannels) {
      const Taps& taps = axis.taps[x];
      const int32_t* weights = axis.weights.data() + taps.weights;
      const uint8_t* pixel = from + size_t{taps.first} * kChannels;
      int64_t red = 0, green = 0, blue = 0;
      for (uint32_t j = 0; j < taps.count; ++j, pixel += kChannels) {
        red += int64_t{weights[j]} * pixel[0];
        green += int64_t{weights[j]} * pixel[1];
        blue += int64_t{weights[j]} * pixel[2];
      }
      to[0] = rounded(red, axis.bits);
      to[1] = rounded(green, axis.bits);
      to[2] = rounded(blue, axis.bits);
    }
  }
  return out;
}

Picture resize_rows(const Picture& picture, uint32_t height, const ResizeOptions& options) {
  const Axis axis = make_axis(picture.size.height, height, options);
  Picture out = Picture::of({picture.size.width, height});
  std::vector<int64_t> sums(out.row_bytes());
  for (uint32_t y = 0; y < height; ++y) {
    const Taps& taps = axis.taps[y];
    std::ranges::fill(sums, 0);
    for (uint32_t j = 0; j < taps.count; ++j) {
      const int64_t weight = axis.weights[taps.weights + j];
      const uint8_t* from = picture.row(taps.first + j);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += weight * from[i];
    }
    uint8_t* to = out.row(y);
    for (size_t i = 0; i < sums.size(); ++i) to[i] = rounded(sums[i], axis.bits);
  }
  return out;
}

bool rows_first(Size from, Size to, ResizeKind kind) {
  if (kind != ResizeKind::kPillow || to.height >= from.height) return false;
  return to.width > from.width || (to.width < from.width && from.height > kPillowTall * from.width);
}

}  // namespace

Picture crop(const Picture& picture, const Rect& part) {
  Picture out = Picture::of(part.size);
  for (uint32_t y = 0; y < part.size.height; ++y) {
    std::memcpy(out.row(y), picture.row(part.y + y) + size_t{part.x} * kChannels, out.row_bytes());
  }
  return out;
}

Picture resize(const Picture& picture, Size to, const ResizeOptions& options) {
  Picture out;
  const Picture* from = &picture;
  const auto rows = [&] {
    if (from->size.height == to.height) return;
    out = resize_rows(*from, to.height, options);
    from = &out;
  };
  const bool begins_with_rows = rows_first(picture.size, to, options.kind);
  if (begins_with_rows) rows();
  if (from->size.width != to.width) {
    out = resize_columns(*from, to.width, options);
    from = &out;
  }
  if (!begins_with_rows) rows();
  return from == &picture ? picture : out;
}

}  // namespace doppler::images
