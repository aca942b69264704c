// A picture in memory: 8-bit RGB, upright, without transparency. Read next: resize.h, prepared_image.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace doppler::images {

struct Size {
  uint32_t width = 0, height = 0;
  uint64_t pixels() const { return uint64_t{width} * height; }
  bool operator==(const Size&) const = default;
};

struct Rect {
  uint32_t x = 0, y = 0;
  Size size;
};

inline constexpr uint32_t kChannels = 3;

struct Picture {
  Size size;
  std::vector<uint8_t> rgb;  // [height, width, 3]

  static Picture of(Size size) { return {size, std::vector<uint8_t>(size.pixels() * kChannels)}; }
  size_t row_bytes() const { return size_t{size.width} * kChannels; }
  const uint8_t* row(uint32_t y) const { return rgb.data() + y * row_bytes(); }
  uint8_t* row(uint32_t y) { return rgb.data() + y * row_bytes(); }
};

// `part` must lie inside the picture.
Picture crop(const Picture& picture, const Rect& part);

}  // namespace doppler::images
