// The key of a picture in native programs: SHA-256.
#include "base/sha256.h"
#include "model/image_numbers.h"

namespace doppler::model {

std::string image_key(const images::PreparedImage& image) { return sha256_hex(sha256(image.key_bytes())); }

}  // namespace doppler::model
