// The decoders of single formats share these: pixels with alpha before they lie on white, and the check of limits.
#pragma once

#include "images/decode_native.h"

namespace doppler::images {

struct Rgba {
  Size size;
  std::vector<uint8_t> pixels;  // [height, width, 4], not premultiplied
  uint32_t orientation = 1;     // EXIF: 1 to 8

  static Rgba of(Size size) { return {.size = size, .pixels = std::vector<uint8_t>(size.pixels() * 4)}; }
};

Result<void> check_size(uint64_t width, uint64_t height, const DecodeLimits& limits);

Result<Rgba> decode_png(std::span<const uint8_t> bytes, const DecodeLimits& limits);
Result<Rgba> decode_jpeg(std::span<const uint8_t> bytes, const DecodeLimits& limits);
Result<Rgba> decode_webp(std::span<const uint8_t> bytes, const DecodeLimits& limits);
Result<Rgba> decode_gif(std::span<const uint8_t> bytes, const DecodeLimits& limits);
Result<Rgba> decode_bmp(std::span<const uint8_t> bytes, const DecodeLimits& limits);

}  // namespace doppler::images
