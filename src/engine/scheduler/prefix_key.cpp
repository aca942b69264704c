#include "engine/scheduler/prefix_key.h"

#include <bit>
#include <random>

namespace doppler::engine {
namespace {

constexpr int kRounds = 2, kFinalRounds = 4;  // the 2 and the 4 of SipHash-2-4

// State and round of SipHash; the names are the paper's.
struct Sip {
  uint64_t v0, v1, v2, v3;
  uint64_t bytes = 0;

  explicit Sip(const PrefixSecret& secret)
      : v0(secret.low ^ 0x736f6d6570736575ull),
        v1(secret.high ^ 0x646f72616e646f6dull ^ 0xee),  // 0xee: 128 bits of output
        v2(secret.low ^ 0x6c7967656e657261ull),
        v3(secret.high ^ 0x7465646279746573ull) {}

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  }
  void take(uint64_t message) {
    v3 ^= message;
    rounds(kRounds);
    v0 ^= message;
  }
  void take(std::span<const uint32_t> words) {
    for (size_t i = 0; i + 1 < words.size(); i += 2) take(words[i] | uint64_t{words[i + 1]} << 32);
    bytes += words.size() * sizeof(uint32_t);
    take((bytes << 56) | (words.size() % 2 ? words.back() : 0));
  }
  PrefixKey finish() {
    PrefixKey key;
    v2 ^= 0xee;
    rounds(kFinalRounds);
    key.low = v0 ^ v1 ^ v2 ^ v3;
    v1 ^= 0xdd;
    rounds(kFinalRounds);
    key.high = v0 ^ v1 ^ v2 ^ v3;
    return key;
  }
};

}  // namespace

PrefixSecret random_prefix_secret() {
  std::random_device device;
  const auto word = [&] { return uint64_t{device()} << 32 | device(); };
  return {.low = word(), .high = word()};
}

PrefixKey prefix_key(const PrefixSecret& secret, const PrefixKey& parent, std::span<const uint32_t> words) {
  Sip sip(secret);
  sip.take(parent.low);
  sip.take(parent.high);
  sip.bytes = sizeof(PrefixKey);
  sip.take(words);
  return sip.finish();
}

PrefixKey siphash_128(const PrefixSecret& secret, std::span<const uint32_t> words) {
  Sip sip(secret);
  sip.take(words);
  return sip.finish();
}

}  // namespace doppler::engine
