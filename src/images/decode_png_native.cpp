// PNG by libpng, in steps that each return instead of jumping over objects with destructors.
#include <png.h>

#include <cstring>
#include <string>

#include "images/decoding_native.h"
#include "images/exif.h"

namespace doppler::images {
namespace {

constexpr png_alloc_size_t kMostChunkBytes = 8 << 20;
constexpr png_uint_32 kMostChunks = 1000;

struct DecodePngReader {
  std::span<const uint8_t> bytes;
  size_t at = 0;
  char message[160] = "";
};

void on_error(png_structp png, png_const_charp message) {
  auto* reader = static_cast<DecodePngReader*>(png_get_error_ptr(png));
  std::strncpy(reader->message, message, sizeof(reader->message) - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, png_size_t count) {
  auto* reader = static_cast<DecodePngReader*>(png_get_io_ptr(png));
  if (count > reader->bytes.size() - reader->at) png_error(png, "the file ends early");
  std::memcpy(to, reader->bytes.data() + reader->at, count);
  reader->at += count;
}

bool read_header(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_info(png, info);
  return true;
}

// 8-bit red, green, blue and alpha, whatever the file has. The high byte of 16 bits stays.
bool read_pixels(png_structp png, png_infop info, uint8_t* to, size_t row_bytes, uint32_t height) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_strip_16(png);
  png_set_expand(png);
  png_set_gray_to_rgb(png);
  png_set_add_alpha(png, 0xFF, PNG_FILLER_AFTER);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "the rows have another length");
  for (int pass = 0; pass < passes; ++pass) {
    for (uint32_t y = 0; y < height; ++y) png_read_row(png, to + y * row_bytes, nullptr);
  }
  png_read_end(png, info);  // the orientation may stand after the pixels
  return true;
}

Unexpected failed(const DecodePngReader& reader) {
  return fail(ErrorKind::kInvalidInput, "A PNG picture cannot be read: libpng says \"%s\".", reader.message);
}

struct Png {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~Png() { png_destroy_read_struct(&png, &info, nullptr); }
};

}  // namespace

Result<Rgba> decode_png(std::span<const uint8_t> bytes, const DecodeLimits& limits) {
  DecodePngReader reader{.bytes = bytes};
  Png file;
  file.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning);
  if (file.png) file.info = png_create_info_struct(file.png);
  if (!file.info) return fail(ErrorKind::kInternal, "libpng has no memory for a file.");
  png_set_read_fn(file.png, &reader, read_bytes);
  png_set_user_limits(file.png, limits.edge, limits.edge);
  png_set_chunk_malloc_max(file.png, kMostChunkBytes);
  png_set_chunk_cache_max(file.png, kMostChunks);
  if (!read_header(file.png, file.info)) return failed(reader);
  const Size size{png_get_image_width(file.png, file.info), png_get_image_height(file.png, file.info)};
  DP_CHECK(check_size(size.width, size.height, limits));
  Rgba out = Rgba::of(size);
  if (!read_pixels(file.png, file.info, out.pixels.data(), size_t{size.width} * 4, size.height)) {
    return failed(reader);
  }
  png_bytep exif = nullptr;
  png_uint_32 exif_bytes = 0;
  if (png_get_eXIf_1(file.png, file.info, &exif_bytes, &exif) != 0) {
    out.orientation = exif_orientation({exif, exif_bytes});
  }
  return out;
}

}  // namespace doppler::images
