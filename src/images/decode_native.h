// Picture files to pixels: PNG, JPEG, WebP (still), GIF (its first frame), BMP. The result is upright (EXIF) and lies
// on white. Bytes are hostile: what a file's header says is checked against the limits before its pixels are decoded.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "images/picture.h"

namespace doppler::images {

struct DecodeLimits {
  uint64_t bytes = 64ull << 20;
  uint64_t pixels = 64ull << 20;
  uint32_t edge = 1u << 15;
};

// Errors: the bytes begin as no known format does, a limit is passed, or the format's library refuses them.
Result<Picture> decode_picture(std::span<const uint8_t> bytes, const DecodeLimits& limits = {});
// As messages name them.
inline constexpr std::string_view kPictureFormats = "PNG, JPEG, WebP, GIF, BMP";

}  // namespace doppler::images
