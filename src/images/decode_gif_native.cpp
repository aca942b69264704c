// The first frame of a GIF, by giflib. The canvas is transparent outside the frame.
#include <gif_lib.h>

#include <algorithm>
#include <cstring>

#include "images/decoding_native.h"

namespace doppler::images {
namespace {

constexpr int kMostRecords = 100;  // before the first frame
constexpr uint32_t kNoColour = 256;

struct Reader {
  std::span<const uint8_t> bytes;
  size_t at = 0;
};

int read_bytes(GifFileType* gif, GifByteType* to, int count) {
  auto* reader = static_cast<Reader*>(gif->UserData);
  const size_t given = std::min(reader->bytes.size() - reader->at, static_cast<size_t>(std::max(count, 0)));
  std::memcpy(to, reader->bytes.data() + reader->at, given);
  reader->at += given;
  return static_cast<int>(given);
}

struct Gif {
  GifFileType* file = nullptr;
  ~Gif() {
    int error = 0;
    if (file) DGifCloseFile(file, &error);
  }
};

Unexpected failed(int error) {
  const char* message = GifErrorString(error);
  return fail(ErrorKind::kInvalidInput, "A GIF picture cannot be read: giflib says \"%s\".",
              message ? message : "no reason");
}

// Skips what stands before the first frame. Returns its transparent colour, or kNoColour.
Result<uint32_t> find_frame(GifFileType* gif) {
  uint32_t transparent = kNoColour;
  for (int i = 0; i < kMostRecords; ++i) {
    GifRecordType type;
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) return failed(gif->Error);
    if (type == IMAGE_DESC_RECORD_TYPE) return transparent;
    if (type != EXTENSION_RECORD_TYPE) break;
    int code = 0;
    GifByteType* data = nullptr;  // its length, then so many bytes
    if (DGifGetExtension(gif, &code, &data) == GIF_ERROR) return failed(gif->Error);
    GraphicsControlBlock control;
    if (data && code == GRAPHICS_EXT_FUNC_CODE && DGifExtensionToGCB(data[0], data + 1, &control) == GIF_OK) {
      transparent = control.TransparentColor == NO_TRANSPARENT_COLOR
                        ? kNoColour
                        : static_cast<uint32_t>(control.TransparentColor);
    }
    while (data) {
      if (DGifGetExtensionNext(gif, &data) == GIF_ERROR) return failed(gif->Error);
    }
  }
  return fail(ErrorKind::kInvalidInput, "The file has no frame among its first %d records.", kMostRecords);
}

void put_row(const GifFileType& gif, const ColorMapObject& colours, uint32_t transparent,
             std::span<const GifPixelType> indices, uint32_t y, Rgba& out) {
  const auto left = static_cast<uint32_t>(gif.Image.Left);
  for (uint32_t x = 0; x < indices.size(); ++x) {
    if (left + x >= out.size.width || y >= out.size.height) return;
    const uint32_t index = indices[x];
    if (index == transparent || index >= static_cast<uint32_t>(colours.ColorCount)) continue;
    const GifColorType& colour = colours.Colors[index];
    uint8_t* to = out.pixels.data() + (size_t{y} * out.size.width + left + x) * 4;
    to[0] = colour.Red;
    to[1] = colour.Green;
    to[2] = colour.Blue;
    to[3] = 255;
  }
}

// The rows of a frame in the order of the file.
std::vector<uint32_t> row_order(uint32_t height, bool is_interlaced) {
  std::vector<uint32_t> rows;
  if (!is_interlaced) {
    for (uint32_t y = 0; y < height; ++y) rows.push_back(y);
    return rows;
  }
  constexpr uint32_t kFirst[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
  for (size_t pass = 0; pass < std::size(kFirst); ++pass) {
    for (uint32_t y = kFirst[pass]; y < height; y += kStep[pass]) rows.push_back(y);
  }
  return rows;
}

}  // namespace

Result<Rgba> decode_gif(std::span<const uint8_t> bytes, const DecodeLimits& limits) {
  Reader reader{bytes};
  int error = 0;
  Gif gif;
  gif.file = DGifOpen(&reader, read_bytes, &error);
  if (!gif.file) return failed(error);
  const auto canvas_width = static_cast<uint64_t>(std::max(gif.file->SWidth, 0));
  const auto canvas_height = static_cast<uint64_t>(std::max(gif.file->SHeight, 0));
  DP_CHECK(check_size(canvas_width, canvas_height, limits));
  DP_TRY(const uint32_t transparent, find_frame(gif.file));
  if (DGifGetImageDesc(gif.file) == GIF_ERROR) return failed(gif.file->Error);
  const GifImageDesc& frame = gif.file->Image;
  const auto width = static_cast<uint32_t>(frame.Width), height = static_cast<uint32_t>(frame.Height);
  DP_CHECK(check_size(width, height, limits));
  const ColorMapObject* colours = frame.ColorMap ? frame.ColorMap : gif.file->SColorMap;
  if (!colours) return fail(ErrorKind::kInvalidInput, "The first frame has no table of colours.");
  Rgba out = Rgba::of({static_cast<uint32_t>(canvas_width), static_cast<uint32_t>(canvas_height)});
  std::vector<GifPixelType> row(width);
  for (const uint32_t y : row_order(height, frame.Interlace)) {
    if (DGifGetLine(gif.file, row.data(), static_cast<int>(width)) == GIF_ERROR)
      return failed(gif.file->Error);
    put_row(*gif.file, *colours, transparent, row, static_cast<uint32_t>(frame.Top) + y, out);
  }
  return out;
}

}  // namespace doppler::images
