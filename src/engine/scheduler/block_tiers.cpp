#include "engine/scheduler/block_tiers.h"

namespace doppler::engine {
Unexpected BlockTiers::none_free() const {
  return fail(ErrorKind::kInternal, "All %u blocks of the pool are held.", pool_.block_count());
}

Result<uint32_t> BlockTiers::take() {
  const auto taken = pool_.take();
  if (!taken) return none_free();
  if (taken->evicted) DP_CHECK(save(taken->block, *taken->evicted));
  return taken->block;
}

size_t BlockTiers::in_host(std::span<const PrefixKey> keys) const {
  size_t count = 0;
  while (count < keys.size() && host_.contains(keys[count])) ++count;
  return count;
}

Result<uint32_t> BlockTiers::restore(const PrefixKey& key) {
  HostCache::Bytes bytes = host_.find(key);
  if (!bytes) return fail(ErrorKind::kInternal, "A prefix that the host's cache held is gone from it.");
  DP_TRY(const uint32_t block, take());
  writes_.push_back({.bytes = bytes, .task = runner_.write_block(block, *bytes)});
  writes_.back().task.start();
  pool_.publish(block, key);
  return block;
}

Result<uint32_t> BlockTiers::make_writable(uint32_t block) {
  const auto writable = pool_.make_writable(block);
  if (!writable) return none_free();
  if (writable->evicted) DP_CHECK(save(writable->block, *writable->evicted));
  if (writable->copy) DP_CHECK(runner_.copy_block(block, writable->block));
  return writable->block;
}

Result<void> BlockTiers::save(uint32_t block, const PrefixKey& key) {
  if (host_.budget_bytes() == 0 || host_.contains(key) || reads_.size() >= runner_.max_block_reads())
    return {};
  reads_.push_back({.key = key, .task = runner_.read_block(block)});
  reads_.back().task.start();
  return {};
}

Result<void> BlockTiers::settle() {
  while (!reads_.empty() && reads_.front().task.done()) {
    Read read = std::move(reads_.front());
    reads_.pop_front();
    DP_TRY(std::vector<uint8_t> bytes, read.task.take());
    host_.put(read.key, std::move(bytes));
  }
  while (!writes_.empty() && writes_.front().task.done()) {
    Write write = std::move(writes_.front());
    writes_.pop_front();
    DP_CHECK(write.task.take());
  }
  return {};
}

}  // namespace doppler::engine
