// Pictures of the public API, from files.
#include "base/mapped_file.h"
#include "doppler/doppler.h"
#include "images/decode_native.h"

namespace doppler {

Result<std::shared_ptr<const Image>> Image::decode(std::span<const uint8_t> file) {
  DP_TRY(images::Picture picture, images::decode_picture(file));
  return std::make_shared<const Image>(
      Image{.width = picture.size.width, .height = picture.size.height, .rgb = std::move(picture.rgb)});
}

Result<std::shared_ptr<const Image>> Image::load(const std::string& path) {
  DP_TRY(const MappedFile file, MappedFile::open(path));
  auto decoded = decode(file.bytes());
  if (!decoded) return forward(std::move(decoded).error().add_while("reading " + path));
  DP_CHECK(file.check_whole());
  return decoded;
}

}  // namespace doppler
