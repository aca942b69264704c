// Fuzz target: any bytes as a picture's file. A picture that is read has the pixels that its size says.
#include "base/fuzz_check.h"
#include "images/decode_native.h"

using namespace doppler;
using namespace doppler::images;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto picture = decode_picture({data, size}, {.pixels = 1 << 18});
  if (!picture) {
    check_sentence(picture.error());
  } else if (picture->rgb.size() != picture->size.pixels() * kChannels || picture->rgb.empty()) {
    std::abort();
  }
  return 0;
}
