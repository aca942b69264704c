// JPEG by libjpeg-turbo, in steps that each return instead of jumping over objects with destructors.

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <string>

// It takes size_t and FILE for granted.
// clang-format off
#include <jpeglib.h>
// clang-format on

#include "images/decoding_native.h"
#include "images/exif.h"

namespace doppler::images {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr unsigned kMostMarkerBytes = 0xFFFF;
constexpr int kMostScans = 200;  // of a progressive file: each is a pass over all its pixels
constexpr long kMostMemory = 1l << 30;

struct Failure {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void on_error(j_common_ptr file) {
  auto* failure = reinterpret_cast<Failure*>(file->err);
  file->err->format_message(file, failure->message);
  std::longjmp(failure->jump, 1);
}

void on_message(j_common_ptr, int) {}

void on_progress(j_common_ptr file) {
  if (!file->is_decompressor) return;
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(file);
  if (decoder->input_scan_number <= kMostScans) return;
  auto* failure = reinterpret_cast<Failure*>(file->err);
  std::snprintf(failure->message, sizeof(failure->message), "more than %d scans", kMostScans);
  std::longjmp(failure->jump, 1);
}

struct Jpeg {
  jpeg_decompress_struct file{};
  Failure failure{};
  jpeg_progress_mgr progress{};

  Jpeg() {
    file.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = on_error;
    failure.manager.emit_message = on_message;
    progress.progress_monitor = on_progress;
  }
  ~Jpeg() { jpeg_destroy_decompress(&file); }
};

bool read_header(Jpeg& jpeg, std::span<const uint8_t> bytes) {
  if (setjmp(jpeg.failure.jump)) return false;
  jpeg_create_decompress(&jpeg.file);
  jpeg.file.progress = &jpeg.progress;
  jpeg.file.mem->max_memory_to_use = kMostMemory;
  jpeg_mem_src(&jpeg.file, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_save_markers(&jpeg.file, kExifMarker, kMostMarkerBytes);
  jpeg_read_header(&jpeg.file, TRUE);
  const bool has_black = jpeg.file.num_components == 4;
  jpeg.file.out_color_space = has_black ? JCS_CMYK : JCS_EXT_RGBA;
  return true;
}

bool read_pixels(Jpeg& jpeg, uint8_t* to, size_t row_bytes) {
  if (setjmp(jpeg.failure.jump)) return false;
  jpeg_start_decompress(&jpeg.file);
  while (jpeg.file.output_scanline < jpeg.file.output_height) {
    JSAMPROW row = to + jpeg.file.output_scanline * row_bytes;
    jpeg_read_scanlines(&jpeg.file, &row, 1);
  }
  jpeg_finish_decompress(&jpeg.file);
  return true;
}

// Cyan, magenta, yellow and black become red, green, blue and full alpha. Adobe's files have them inverted.
void convert_cmyk(std::vector<uint8_t>& pixels, bool is_inverted) {
  for (size_t i = 0; i + 3 < pixels.size(); i += 4) {
    const uint32_t light = is_inverted ? pixels[i + 3] : 255u - pixels[i + 3];
    for (size_t c = i; c < i + 3; ++c) {
      const uint32_t value = is_inverted ? pixels[c] : 255u - pixels[c];
      pixels[c] = static_cast<uint8_t>((value * light + 127) / 255);
    }
    pixels[i + 3] = 255;
  }
}

Unexpected failed(const Jpeg& jpeg) {
  return fail(ErrorKind::kInvalidInput, "A JPEG picture cannot be read: libjpeg says \"%s\".",
              jpeg.failure.message);
}

}  // namespace

Result<Rgba> decode_jpeg(std::span<const uint8_t> bytes, const DecodeLimits& limits) {
  Jpeg jpeg;
  if (!read_header(jpeg, bytes)) return failed(jpeg);
  const Size size{jpeg.file.image_width, jpeg.file.image_height};
  DP_CHECK(check_size(size.width, size.height, limits));
  Rgba out = Rgba::of(size);
  for (jpeg_saved_marker_ptr marker = jpeg.file.marker_list; marker; marker = marker->next) {
    if (marker->marker != kExifMarker || out.orientation != 1) continue;
    out.orientation = exif_orientation({marker->data, marker->data_length});
  }
  if (!read_pixels(jpeg, out.pixels.data(), size_t{size.width} * 4)) return failed(jpeg);
  if (jpeg.file.out_color_space == JCS_CMYK) convert_cmyk(out.pixels, jpeg.file.saw_Adobe_marker);
  return out;
}

}  // namespace doppler::images
