// decode_native.h without the libraries of picture formats, which the build for Windows does not have yet.
#include "images/decode_native.h"

namespace doppler::images {

Result<Picture> decode_picture(std::span<const uint8_t> /*bytes*/, const DecodeLimits& /*limits*/) {
  return fail(ErrorKind::kUnsupported,
              "This build for Windows reads no picture files; the one for Linux does.");
}

}  // namespace doppler::images
