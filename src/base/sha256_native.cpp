// libcrypto behind sha256.h, through its EVP interface: the one that dispatches to SHA instructions.
#include <openssl/evp.h>

#include <cstdlib>

#include "base/sha256.h"

namespace doppler {

struct Sha256Hasher::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
  // Fails only without memory, or when the installation of OpenSSL has no SHA-256 at all.
  void begin() {
    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1) std::abort();
  }
};

Sha256Hasher::Sha256Hasher() : state_(std::make_unique<State>()) { state_->begin(); }
Sha256Hasher::~Sha256Hasher() = default;
Sha256Hasher::Sha256Hasher(Sha256Hasher&&) noexcept = default;
Sha256Hasher& Sha256Hasher::operator=(Sha256Hasher&&) noexcept = default;

void Sha256Hasher::update(std::span<const uint8_t> bytes) {
  if (EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) != 1) std::abort();
}

Sha256 Sha256Hasher::finish() {
  Sha256 digest;
  if (EVP_DigestFinal_ex(state_->context, digest.data(), nullptr) != 1) std::abort();
  state_->begin();
  return digest;
}

Sha256 sha256(std::span<const uint8_t> bytes) {
  Sha256Hasher hasher;
  hasher.update(bytes);
  return hasher.finish();
}

Task<std::optional<Sha256>> host_sha256(std::span<const uint8_t> bytes) { co_return sha256(bytes); }

}  // namespace doppler
