// In WebAssembly hashing is the host's to do (WebCrypto), and the host does not offer it yet: see sha256.h.
#include "base/sha256.h"

namespace doppler {

Task<std::optional<Sha256>> host_sha256(std::span<const uint8_t> /*bytes*/) {
  co_return std::optional<Sha256>();
}

}  // namespace doppler
