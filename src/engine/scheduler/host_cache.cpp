#include "engine/scheduler/host_cache.h"

namespace doppler::engine {

HostCache::Bytes HostCache::find(const PrefixKey& key) {
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  entries_.splice(entries_.end(), entries_, it->second);
  return it->second->bytes;
}

void HostCache::put(const PrefixKey& key, std::vector<uint8_t> bytes) {
  if (bytes.size() > budget_bytes_ || find(key)) return;
  used_bytes_ += bytes.size();
  auto shared = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
  by_key_[key] = entries_.insert(entries_.end(), {.key = key, .bytes = std::move(shared)});
  while (used_bytes_ > budget_bytes_) {
    used_bytes_ -= entries_.front().bytes->size();
    by_key_.erase(entries_.front().key);
    entries_.pop_front();
  }
}

}  // namespace doppler::engine
