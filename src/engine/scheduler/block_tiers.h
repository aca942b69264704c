// The pool's blocks together with the host's cache. A prefix that leaves the pool is read into the host's cache before
// its block is written again; a prefix that is needed again comes back. Both are queued among the runner's calls, and
// no call waits for them: settle() takes what has arrived. Without a budget no block is read.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "engine/scheduler/block_pool.h"
#include "engine/scheduler/host_cache.h"
#include "model/sequence_runner.h"

namespace doppler::engine {

class BlockTiers {
 public:
  // `runner` must outlive it.
  BlockTiers(model::SequenceRunner& runner, PrefixSecret secret, uint64_t host_bytes)
      : runner_(runner), pool_(runner.block_count(), runner.block_len(), secret), host_(host_bytes) {}

  BlockPool& pool() { return pool_; }
  const BlockPool& pool() const { return pool_; }
  const HostCache& host() const { return host_; }

  // A block with one reference; the caller has seen pool().free_count() > 0.
  Result<uint32_t> take();
  // The number of keys, from the first on, that the host's cache has.
  size_t in_host(std::span<const PrefixKey> keys) const;
  // Takes a block, has the host's bytes of `key` written to it and publishes it. Preconditions: that of take(), and
  // in_host() has counted the key since the last settle().
  Result<uint32_t> restore(const PrefixKey& key);
  // Copy on write (BlockPool::make_writable). Precondition: only the caller holds the block, or that of take().
  Result<uint32_t> make_writable(uint32_t block);
  // Takes what was read, forgets what was written; what is still under way stays for the next time.
  Result<void> settle();

 private:
  Unexpected none_free() const;
  Result<void> save(uint32_t block, const PrefixKey& key);

  struct Read {
    PrefixKey key;
    Task<Result<std::vector<uint8_t>>> task;
  };
  struct Write {
    HostCache::Bytes bytes;  // destroyed after the task, which reads them
    Task<Result<void>> task;
  };
  model::SequenceRunner& runner_;
  BlockPool pool_;
  HostCache host_;
  std::deque<Read> reads_;
  std::deque<Write> writes_;
};

}  // namespace doppler::engine
