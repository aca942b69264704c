// SHA-256: natively by OpenSSL's libcrypto, which uses the CPU's SHA instructions; WebAssembly has no hash of
// its own (host_sha256() says so by an empty answer, and its caller must say what stays unverified).
// Several threads may hash at once, each with a hasher of its own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/task.h"

namespace doppler {

using Sha256 = std::array<uint8_t, 32>;

std::string sha256_hex(const Sha256& digest);                         // 64 lower-case digits
std::optional<Sha256> sha256_from_hex(std::string_view hexadecimal);  // only 64 lower-case digits

inline std::span<const uint8_t> text_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// In every build. Empty: this host cannot hash.
Task<std::optional<Sha256>> host_sha256(std::span<const uint8_t> bytes);

// Native builds only (sha256_native.cpp).
class Sha256Hasher {
 public:
  Sha256Hasher();
  ~Sha256Hasher();
  Sha256Hasher(Sha256Hasher&&) noexcept;
  Sha256Hasher& operator=(Sha256Hasher&&) noexcept;

  void update(std::span<const uint8_t> bytes);
  Sha256 finish();  // and begin anew

 private:
  struct State;
  std::unique_ptr<State> state_;
};
Sha256 sha256(std::span<const uint8_t> bytes);

}  // namespace doppler
