#include "images/decode_native.h"

#include <cstring>

#include "base/text.h"
#include "images/decoding_native.h"
#include "images/exif.h"

namespace doppler::images {
namespace {

struct Format {
  const char* name;
  bool (*matches)(std::string_view beginning);
  Result<Rgba> (*decode)(std::span<const uint8_t> bytes, const DecodeLimits& limits);
};

constexpr Format kFormats[] = {
    {"PNG", [](std::string_view b) { return b.starts_with("\x89PNG\r\n\x1a\n"); }, decode_png},
    {"JPEG", [](std::string_view b) { return b.starts_with("\xff\xd8\xff"); }, decode_jpeg},
    {"WebP", [](std::string_view b) { return b.starts_with("RIFF") && b.find("WEBP") == 8; }, decode_webp},
    {"GIF", [](std::string_view b) { return b.starts_with("GIF87a") || b.starts_with("GIF89a"); },
     decode_gif},
    {"BMP", [](std::string_view b) { return b.starts_with("BM"); }, decode_bmp},
};
constexpr size_t kBeginning = 12;

std::string hexadecimal(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += format_text("%s%02x", out.empty() ? "" : " ", static_cast<uint8_t>(c));
  return out;
}

Picture on_white(const Rgba& rgba) {
  Picture out = Picture::of(rgba.size);
  for (size_t i = 0; i < out.size.pixels(); ++i) {
    const uint8_t* from = rgba.pixels.data() + i * 4;
    const uint32_t alpha = from[3];
    for (uint32_t c = 0; c < kChannels; ++c) {
      out.rgb[i * kChannels + c] = static_cast<uint8_t>((from[c] * alpha + 255 * (255 - alpha) + 127) / 255);
    }
  }
  return out;
}

}  // namespace

Result<void> check_size(uint64_t width, uint64_t height, const DecodeLimits& limits) {
  if (width == 0 || height == 0) {
    return fail(ErrorKind::kInvalidInput, "A picture has %llu x %llu pixels.",
                static_cast<unsigned long long>(width), static_cast<unsigned long long>(height));
  }
  if (width <= limits.edge && height <= limits.edge && width * height <= limits.pixels) return {};
  return fail(ErrorKind::kInvalidInput,
              "A picture has %llu x %llu pixels; allowed are %llu, and %u along an edge.",
              static_cast<unsigned long long>(width), static_cast<unsigned long long>(height),
              static_cast<unsigned long long>(limits.pixels), limits.edge);
}

Result<Picture> decode_picture(std::span<const uint8_t> bytes, const DecodeLimits& limits) {
  if (bytes.size() > limits.bytes) {
    return fail(ErrorKind::kInvalidInput, "A picture's file has %zu bytes; allowed are %llu.", bytes.size(),
                static_cast<unsigned long long>(limits.bytes));
  }
  const std::string_view beginning(reinterpret_cast<const char*>(bytes.data()),
                                   std::min(bytes.size(), kBeginning));
  for (const Format& format : kFormats) {
    if (!format.matches(beginning)) continue;
    const auto decoded = format.decode(bytes, limits);
    DP_CHECK_WHILE(decoded, "reading a %s picture", format.name);
    return upright(on_white(*decoded), decoded->orientation);
  }
  return fail(ErrorKind::kInvalidInput, "A picture begins with the bytes \"%s\"; known formats are %s.",
              hexadecimal(beginning).c_str(), std::string(kPictureFormats).c_str());
}

}  // namespace doppler::images
