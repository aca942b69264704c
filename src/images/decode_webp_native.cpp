// Still WebP by libwebp.
#include <webp/decode.h>

#include <cstring>

#include "images/decoding_native.h"
#include "images/exif.h"

namespace doppler::images {
namespace {

constexpr size_t kRiffHeader = 12, kChunkHeader = 8;

// The first chunk of the RIFF file that is called EXIF; else empty.
std::span<const uint8_t> exif_chunk(std::span<const uint8_t> bytes) {
  size_t at = kRiffHeader;
  while (at + kChunkHeader <= bytes.size()) {
    const uint8_t* head = bytes.data() + at;
    const uint64_t length = head[4] | head[5] << 8 | head[6] << 16 | uint64_t{head[7]} << 24;
    const uint64_t left = bytes.size() - at - kChunkHeader;
    if (length > left) return {};
    if (std::memcmp(head, "EXIF", 4) == 0) return bytes.subspan(at + kChunkHeader, length);
    at += kChunkHeader + length + length % 2;
  }
  return {};
}

}  // namespace

Result<Rgba> decode_webp(std::span<const uint8_t> bytes, const DecodeLimits& limits) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) {
    return fail(ErrorKind::kInvalidInput, "The file's header is damaged.");
  }
  if (features.has_animation) {
    return fail(ErrorKind::kUnsupported, "The file is an animation; allowed are still pictures.");
  }
  DP_CHECK(check_size(static_cast<uint64_t>(features.width), static_cast<uint64_t>(features.height), limits));
  Rgba out = Rgba::of({static_cast<uint32_t>(features.width), static_cast<uint32_t>(features.height)});
  if (!WebPDecodeRGBAInto(bytes.data(), bytes.size(), out.pixels.data(), out.pixels.size(),
                          features.width * 4)) {
    return fail(ErrorKind::kInvalidInput, "The file's pixels are damaged.");
  }
  out.orientation = exif_orientation(exif_chunk(bytes));
  return out;
}

}  // namespace doppler::images
