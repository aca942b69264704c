// Implements sha256.h with only libcrypto's functions for SHA-256. They dispatch to the CPU's SHA instructions as its
// EVP interface does, which OpenSSL 3 recommends instead, and need nothing else of the library. EVP brings nearly the
// whole library into the program (5 MB), and on Debian 13 also zlib and zstd, which libdoppler.so cannot hold.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "base/sha256.h"

namespace doppler {

// SHA256_Init, SHA256_Update and SHA256_Final cannot fail.
struct Sha256Hasher::State {
  SHA256_CTX context;
  State() { SHA256_Init(&context); }
};

Sha256Hasher::Sha256Hasher() : state_(std::make_unique<State>()) {}
Sha256Hasher::~Sha256Hasher() = default;
Sha256Hasher::Sha256Hasher(Sha256Hasher&&) noexcept = default;
Sha256Hasher& Sha256Hasher::operator=(Sha256Hasher&&) noexcept = default;

void Sha256Hasher::update(std::span<const uint8_t> bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

Sha256 Sha256Hasher::finish() {
  Sha256 digest;
  SHA256_Final(digest.data(), &state_->context);
  SHA256_Init(&state_->context);
  return digest;
}

Sha256 sha256(std::span<const uint8_t> bytes) {
  Sha256Hasher hasher;
  hasher.update(bytes);
  return hasher.finish();
}

Task<std::optional<Sha256>> host_sha256(std::span<const uint8_t> bytes) { co_return sha256(bytes); }

}  // namespace doppler
