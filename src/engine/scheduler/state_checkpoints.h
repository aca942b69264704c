// Says which of the runner's checkpoints of recurrent states (SequenceRunner::save_states) stands after which prefix:
// under the key of the prefix's last block (block_pool.h), whose keys and values the pool may have or not. The one used
// longest ago makes room. For models without such states all prefixes are usable, and no checkpoints are kept.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/scheduler/prefix_key.h"
#include "model/sequence_runner.h"

namespace doppler::engine {

class StateCheckpoints {
 public:
  // `runner` must outlive it.
  explicit StateCheckpoints(model::SequenceRunner& runner);

  // The most of the `found` first blocks after which a text of `tokens` tokens can begin.
  size_t usable(std::span<const PrefixKey> keys, size_t found, uint32_t tokens) const;
  // Saves the slot's states, which stand after the block of this key. on_trial: until they are used they are the first
  // to make room.
  Result<void> save(uint32_t slot, const PrefixKey& key, bool on_trial);
  // Precondition: usable() has named this key's block since the last save().
  Result<void> load(const PrefixKey& key, uint32_t slot);

 private:
  struct Entry {
    PrefixKey key;
    uint32_t checkpoint = 0;
  };
  using Entries = std::list<Entry>;  // the first makes room

  model::SequenceRunner& runner_;
  Entries entries_;
  std::unordered_map<PrefixKey, Entries::iterator, PrefixKeyHash> by_key_;
};

}  // namespace doppler::engine
