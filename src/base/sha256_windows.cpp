// sha256.h by the system's own library, which uses the CPU's SHA instructions.
#include "base/sha256.h"
#include "base/system_windows.h"
// After windows.h, which it needs.
#include <bcrypt.h>

#include <algorithm>

namespace doppler {

// The algorithm is the system's own, so that these calls never fail.
struct Sha256Hasher::State {
  BCRYPT_HASH_HANDLE hash = nullptr;
  State() { begin(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { ::BCryptDestroyHash(hash); }
  void begin() {
    static const BCRYPT_ALG_HANDLE algorithm = [] {
      BCRYPT_ALG_HANDLE opened = nullptr;
      ::BCryptOpenAlgorithmProvider(&opened, BCRYPT_SHA256_ALGORITHM, nullptr, 0);
      return opened;
    }();
    ::BCryptCreateHash(algorithm, &hash, nullptr, 0, nullptr, 0, 0);
  }
};

Sha256Hasher::Sha256Hasher() : state_(std::make_unique<State>()) {}
Sha256Hasher::~Sha256Hasher() = default;
Sha256Hasher::Sha256Hasher(Sha256Hasher&&) noexcept = default;
Sha256Hasher& Sha256Hasher::operator=(Sha256Hasher&&) noexcept = default;

void Sha256Hasher::update(std::span<const uint8_t> bytes) {
  constexpr size_t kLargestPiece = 1u << 30;  // sizes are of 32 bits there
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kLargestPiece));
    ::BCryptHashData(state_->hash, const_cast<uint8_t*>(piece.data()), static_cast<ULONG>(piece.size()), 0);
    bytes = bytes.subspan(piece.size());
  }
}

Sha256 Sha256Hasher::finish() {
  Sha256 digest;
  ::BCryptFinishHash(state_->hash, digest.data(), static_cast<ULONG>(digest.size()), 0);
  ::BCryptDestroyHash(state_->hash);
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
