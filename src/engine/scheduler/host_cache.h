// Keys and values of blocks that left the pool, in the host's memory: key -> bytes as the runner gave them, least
// recently used first out, never more than its budget.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/scheduler/prefix_key.h"

namespace doppler::engine {

class HostCache {
 public:
  using Bytes =
      std::shared_ptr<const std::vector<uint8_t>>;  // shared: an entry may leave while it is written back

  explicit HostCache(uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  uint64_t budget_bytes() const { return budget_bytes_; }  // 0: keeps nothing
  uint64_t used_bytes() const { return used_bytes_; }
  bool contains(const PrefixKey& key) const { return by_key_.contains(key); }
  // Null: not here. Counts as a use.
  Bytes find(const PrefixKey& key);
  // Bytes that exceed the whole budget are not kept.
  void put(const PrefixKey& key, std::vector<uint8_t> bytes);

 private:
  struct Entry {
    PrefixKey key;
    Bytes bytes;
  };
  uint64_t budget_bytes_, used_bytes_ = 0;
  std::list<Entry> entries_;  // least recently used first
  std::unordered_map<PrefixKey, std::list<Entry>::iterator, PrefixKeyHash> by_key_;
};

}  // namespace doppler::engine
