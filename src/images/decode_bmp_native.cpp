// BMP without compression: 1, 4 and 8 bits with a palette, 24 and 32 bits. Other kinds are refused by name.
#include <cstdlib>

#include "images/decoding_native.h"

namespace doppler::images {
namespace {

constexpr uint32_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40;
constexpr uint32_t kUncompressed = 0, kBitFields = 3;

struct Bmp {
  std::span<const uint8_t> bytes;
  uint32_t pixels = 0, header = 0, bits = 0, palette = 0, colours = 0, colour_bytes = 4;
  Size size;
  bool is_top_down = false;

  uint32_t number(uint64_t at, uint32_t count) const {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i) value |= uint32_t{bytes[at + i]} << 8 * i;
    return value;
  }
};

Unexpected ends_early() { return fail(ErrorKind::kInvalidInput, "The file ends early."); }

Result<void> read_info_header(Bmp& bmp, const DecodeLimits& limits) {
  const auto width = static_cast<int32_t>(bmp.number(kFileHeader + 4, 4));
  const auto height = static_cast<int32_t>(bmp.number(kFileHeader + 8, 4));
  bmp.is_top_down = height < 0;
  DP_CHECK(check_size(width < 0 ? 0 : static_cast<uint64_t>(width),
                      static_cast<uint64_t>(std::llabs(int64_t{height})), limits));
  bmp.size = {static_cast<uint32_t>(width), static_cast<uint32_t>(std::llabs(int64_t{height}))};
  bmp.bits = bmp.number(kFileHeader + 14, 2);
  const uint32_t compression = bmp.number(kFileHeader + 16, 4);
  // Bit fields in the usual order are what 32 bits without compression are.
  const bool is_usual = compression == kBitFields && bmp.bits == 32 && bmp.bytes.size() >= kFileHeader + 52 &&
                        bmp.number(kFileHeader + 40, 4) == 0xFF0000 &&
                        bmp.number(kFileHeader + 44, 4) == 0xFF00 && bmp.number(kFileHeader + 48, 4) == 0xFF;
  if (compression != kUncompressed && !is_usual) {
    return fail(ErrorKind::kUnsupported, "The file has compression %u; allowed is 0, none.", compression);
  }
  bmp.colours = bmp.number(kFileHeader + 32, 4);
  return {};
}

Result<void> read_core_header(Bmp& bmp, const DecodeLimits& limits) {
  bmp.size = {bmp.number(kFileHeader + 4, 2), bmp.number(kFileHeader + 6, 2)};
  DP_CHECK(check_size(bmp.size.width, bmp.size.height, limits));
  bmp.bits = bmp.number(kFileHeader + 10, 2);
  bmp.colour_bytes = 3;
  return {};
}

Result<Bmp> read_headers(std::span<const uint8_t> bytes, const DecodeLimits& limits) {
  Bmp bmp{.bytes = bytes};
  if (bytes.size() < kFileHeader + kCoreHeader) return ends_early();
  bmp.pixels = bmp.number(10, 4);
  bmp.header = bmp.number(kFileHeader, 4);
  if (bmp.header != kCoreHeader && bmp.header < kInfoHeader) {
    return fail(ErrorKind::kUnsupported, "The file has a header of %u bytes; allowed are %u, and %u or more.",
                bmp.header, kCoreHeader, kInfoHeader);
  }
  if (bytes.size() - kFileHeader < bmp.header) return ends_early();
  DP_CHECK(bmp.header == kCoreHeader ? read_core_header(bmp, limits) : read_info_header(bmp, limits));
  if (bmp.bits != 1 && bmp.bits != 4 && bmp.bits != 8 && bmp.bits != 24 && bmp.bits != 32) {
    return fail(ErrorKind::kUnsupported, "The file has %u bits a pixel; allowed are 1, 4, 8, 24 and 32.",
                bmp.bits);
  }
  bmp.palette = kFileHeader + bmp.header;
  if (bmp.bits <= 8) {
    const uint32_t most = 1u << bmp.bits;
    if (bmp.colours == 0 || bmp.colours > most) bmp.colours = most;
    if (bmp.palette + uint64_t{bmp.colours} * bmp.colour_bytes > bytes.size()) return ends_early();
  }
  const uint64_t row_bytes = (uint64_t{bmp.size.width} * bmp.bits + 31) / 32 * 4;
  if (bmp.pixels + row_bytes * bmp.size.height > bytes.size()) return ends_early();
  return bmp;
}

// Where the blue, green and red byte of a pixel stand.
uint64_t colour_place(const Bmp& bmp, uint64_t row, uint32_t x) {
  if (bmp.bits >= 24) return row + uint64_t{x} * (bmp.bits / 8);
  const uint32_t per_byte = 8 / bmp.bits;
  const uint32_t shift = 8 - bmp.bits * (x % per_byte + 1);
  const uint32_t index = bmp.bytes[row + x / per_byte] >> shift & ((1u << bmp.bits) - 1);
  return bmp.palette + uint64_t{index < bmp.colours ? index : 0} * bmp.colour_bytes;
}

}  // namespace

Result<Rgba> decode_bmp(std::span<const uint8_t> bytes, const DecodeLimits& limits) {
  DP_TRY(const Bmp bmp, read_headers(bytes, limits));
  const uint64_t row_bytes = (uint64_t{bmp.size.width} * bmp.bits + 31) / 32 * 4;
  Rgba out = Rgba::of(bmp.size);
  uint8_t* to = out.pixels.data();
  for (uint32_t y = 0; y < bmp.size.height; ++y) {
    const uint64_t row = bmp.pixels + row_bytes * (bmp.is_top_down ? y : bmp.size.height - 1 - y);
    for (uint32_t x = 0; x < bmp.size.width; ++x, to += 4) {
      const uint64_t at = colour_place(bmp, row, x);
      to[0] = bytes[at + 2];
      to[1] = bytes[at + 1];
      to[2] = bytes[at];
      to[3] = 255;
    }
  }
  return out;
}

}  // namespace doppler::images
