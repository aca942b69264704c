// The name of a full block by its content: a hash of everything that its keys and values depend on, which are its
// tokens and all before them. A block's key is made of its parent's key (the block before) and its own tokens; the
// parent of a first block stands for the request's extras (what else changes keys and values, as an adapter does).
// The hash is SipHash-2-4 with 128 bits of output (Aumasson and Bernstein 2012) under a secret: who does not know the
// secret cannot make two prefixes with one key, and by chance that takes about 2^64 blocks. So equal keys are taken
// for equal prefixes, and tokens are not compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace doppler::engine {

struct PrefixKey {
  uint64_t low = 0, high = 0;
  bool operator==(const PrefixKey&) const = default;
};

struct PrefixKeyHash {  // for unordered containers: the key is a hash already
  size_t operator()(const PrefixKey& key) const { return static_cast<size_t>(key.low); }
};

struct PrefixSecret {
  uint64_t low = 0, high = 0;
};
PrefixSecret random_prefix_secret();

// `words`: the extras after a zero key, or a block's tokens after its parent's key.
PrefixKey prefix_key(const PrefixSecret& secret, const PrefixKey& parent, std::span<const uint32_t> words);
// The hash itself, of the words as little-endian bytes.
PrefixKey siphash_128(const PrefixSecret& secret, std::span<const uint32_t> words);

}  // namespace doppler::engine
