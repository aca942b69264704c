// Says who holds which block of the runner's pool, and which blocks hold a known prefix. References are counted: a
// block of a common prefix is held by every sequence that begins with it. A full block can be published under its key
// (prefix_key.h); it stays findable when no sequence holds it any more, until the pool needs it: least recently used
// first. This is only bookkeeping: BlockTiers (block_tiers.h), which also knows the host's cache, moves keys and
// values.
//
// A block is in one of three states: held (references > 0), cached (published, not held), empty (neither).
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/scheduler/prefix_key.h"

namespace doppler::engine {

class BlockPool {
 public:
  BlockPool(uint32_t block_count, uint32_t block_len, PrefixSecret secret);

  uint32_t block_count() const { return static_cast<uint32_t>(blocks_.size()); }
  uint32_t block_len() const { return block_len_; }
  uint32_t free_count() const { return static_cast<uint32_t>(empty_.size() + cached_.size()); }
  uint32_t references(uint32_t block) const { return blocks_[block].references; }
  bool published(uint32_t block) const { return blocks_[block].published; }

  struct Taken {
    uint32_t block = 0;
    std::optional<PrefixKey> evicted;  // the prefix that the block held until now
  };
  // A block with one reference: an empty one, or else the cached one that was used longest ago. None: all are held.
  std::optional<Taken> take();
  void share(uint32_t block);    // one more reference to a held block
  void release(uint32_t block);  // one reference less; the last one makes it cached or empty

  // Keys of the full blocks of `tokens`.
  std::vector<PrefixKey> keys_of(std::span<const uint32_t> tokens, std::span<const uint32_t> extras) const;
  // The key of the block after `parent`'s, or of the first block (root_key).
  PrefixKey key_of(const PrefixKey& parent, std::span<const uint32_t> tokens) const {
    return prefix_key(secret_, parent, tokens);
  }
  PrefixKey root_key(std::span<const uint32_t> extras) const { return prefix_key(secret_, {}, extras); }
  // The longest run of published blocks from the first key on, each with a reference for the caller.
  std::vector<uint32_t> find_prefix(std::span<const PrefixKey> keys);
  bool has(const PrefixKey& key) const { return by_key_.contains(key); }
  // A held block is full. Where another block is published under this key already, it stays unpublished.
  void publish(uint32_t block, const PrefixKey& key);

  struct Writable {
    uint32_t block = 0;  // with the caller's reference, instead of the block given
    bool copy = false;   // keys and values must be copied from the block given, before other calls
    std::optional<PrefixKey> evicted;  // as in Taken
  };
  // Copy on write: the caller gives back its reference to `block` and gets one that only it holds and that is not
  // published, with the same content once copied. None: others hold the block too and no other is free.
  std::optional<Writable> make_writable(uint32_t block);

  // Checks that every block is in one state and the keys name the right blocks. For tests.
  Result<void> check() const;

 private:
  struct Block {
    uint32_t references = 0;
    bool published = false;
    PrefixKey key;
    std::list<uint32_t>::iterator place;  // in cached_, while cached
  };
  void unpublish(Block& block);

  uint32_t block_len_;
  PrefixSecret secret_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> empty_;
  std::list<uint32_t> cached_;  // least recently used first
  std::unordered_map<PrefixKey, uint32_t, PrefixKeyHash> by_key_;
};

}  // namespace doppler::engine
