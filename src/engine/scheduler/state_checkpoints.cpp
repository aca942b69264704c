#include "engine/scheduler/state_checkpoints.h"

#include <algorithm>

namespace doppler::engine {

StateCheckpoints::StateCheckpoints(model::SequenceRunner& runner) : runner_(runner) {}

size_t StateCheckpoints::usable(std::span<const PrefixKey> keys, size_t found, uint32_t tokens) const {
  if (!runner_.has_states()) return found;
  // The last token is always evaluated, after the states of the tokens before.
  size_t blocks = std::min<size_t>(found, (tokens - 1) / runner_.block_len());
  while (blocks > 0 && !by_key_.contains(keys[blocks - 1])) --blocks;
  return blocks;
}

Result<void> StateCheckpoints::save(uint32_t slot, const PrefixKey& key, bool on_trial) {
  if (const auto known = by_key_.find(key); known != by_key_.end()) {
    if (!on_trial) entries_.splice(entries_.end(), entries_, known->second);
    return {};
  }
  auto checkpoint = static_cast<uint32_t>(entries_.size());
  if (checkpoint == runner_.checkpoint_count()) {
    checkpoint = entries_.front().checkpoint;
    by_key_.erase(entries_.front().key);
    entries_.pop_front();
  }
  const auto place = on_trial ? entries_.begin() : entries_.end();
  by_key_[key] = entries_.insert(place, {.key = key, .checkpoint = checkpoint});
  return runner_.save_states(slot, checkpoint);
}

Result<void> StateCheckpoints::load(const PrefixKey& key, uint32_t slot) {
  const auto known = by_key_.find(key);
  if (known == by_key_.end())
    return fail(ErrorKind::kInternal, "The recurrent states of a known prefix are gone.");
  entries_.splice(entries_.end(), entries_, known->second);
  return runner_.load_states(known->second->checkpoint, slot);
}

}  // namespace doppler::engine
