#include "images/exif.h"

#include <cstring>
#include <utility>

namespace doppler::images {
namespace {

constexpr uint32_t kUpright = 1, kMostOrientation = 8;
constexpr uint32_t kOrientationTag = 0x0112, kShort = 3;

struct Tiff {
  std::span<const uint8_t> bytes;
  bool is_little = false;

  uint32_t number(size_t at, size_t count) const {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value |= uint32_t{bytes[at + i]} << 8 * (is_little ? i : count - 1 - i);
    }
    return value;
  }
};

}  // namespace

uint32_t exif_orientation(std::span<const uint8_t> exif) {
  constexpr uint8_t kMark[] = {'E', 'x', 'i', 'f', 0, 0};
  if (exif.size() >= sizeof(kMark) && std::memcmp(exif.data(), kMark, sizeof(kMark)) == 0) {
    exif = exif.subspan(sizeof(kMark));
  }
  if (exif.size() < 8) return kUpright;
  Tiff tiff{exif, exif[0] == 'I'};
  if (exif[0] != exif[1] || (exif[0] != 'I' && exif[0] != 'M') || tiff.number(2, 2) != 42) return kUpright;
  const uint64_t directory = tiff.number(4, 4);
  if (directory + 2 > exif.size()) return kUpright;
  const uint32_t entries = tiff.number(directory, 2);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t at = directory + 2 + 12 * i;
    if (at + 12 > exif.size()) return kUpright;
    if (tiff.number(at, 2) != kOrientationTag || tiff.number(at + 2, 2) != kShort) continue;
    const uint32_t value = tiff.number(at + 8, 2);
    return value >= kUpright && value <= kMostOrientation ? value : kUpright;
  }
  return kUpright;
}

Picture upright(Picture picture, uint32_t orientation) {
  if (orientation <= kUpright || orientation > kMostOrientation) return picture;
  const Size from = picture.size;
  const bool is_turned = orientation >= 5;
  Picture out = Picture::of(is_turned ? Size{from.height, from.width} : from);
  // Where the pixel at (x, y) of the file is to be seen.
  const auto place = [&](uint32_t x, uint32_t y) -> std::pair<uint32_t, uint32_t> {
    const uint32_t right = from.width - 1 - x, bottom = from.height - 1 - y;
    switch (orientation) {
      case 2:
        return {right, y};
      case 3:
        return {right, bottom};
      case 4:
        return {x, bottom};
      case 5:
        return {y, x};
      case 6:
        return {bottom, x};
      case 7:
        return {bottom, right};
      default:
        return {y, right};
    }
  };
  for (uint32_t y = 0; y < from.height; ++y) {
    const uint8_t* pixel = picture.row(y);
    for (uint32_t x = 0; x < from.width; ++x, pixel += kChannels) {
      const auto [to_x, to_y] = place(x, y);
      std::memcpy(out.row(to_y) + size_t{to_x} * kChannels, pixel, kChannels);
    }
  }
  return out;
}

}  // namespace doppler::images
