#include "engine/scheduler/block_pool.h"

#include <algorithm>

namespace doppler::engine {

BlockPool::BlockPool(uint32_t block_count, uint32_t block_len, PrefixSecret secret)
    : block_len_(block_len), secret_(secret), blocks_(block_count) {
  for (uint32_t block = block_count; block-- > 0;) empty_.push_back(block);  // 0 is taken first
}

std::optional<BlockPool::Taken> BlockPool::take() {
  Taken out;
  if (!empty_.empty()) {
    out.block = empty_.back();
    empty_.pop_back();
  } else if (!cached_.empty()) {
    out.block = cached_.front();
    cached_.pop_front();
    out.evicted = blocks_[out.block].key;
    unpublish(blocks_[out.block]);
  } else {
    return std::nullopt;
  }
  blocks_[out.block].references = 1;
  return out;
}

void BlockPool::share(uint32_t block) { ++blocks_[block].references; }

void BlockPool::release(uint32_t block) {
  Block& it = blocks_[block];
  if (--it.references > 0) return;
  if (it.published) {
    it.place = cached_.insert(cached_.end(), block);
  } else {
    empty_.push_back(block);
  }
}

std::vector<PrefixKey> BlockPool::keys_of(std::span<const uint32_t> tokens,
                                          std::span<const uint32_t> extras) const {
  std::vector<PrefixKey> keys;
  PrefixKey parent = root_key(extras);
  for (size_t at = 0; at + block_len_ <= tokens.size(); at += block_len_) {
    parent = key_of(parent, tokens.subspan(at, block_len_));
    keys.push_back(parent);
  }
  return keys;
}

std::vector<uint32_t> BlockPool::find_prefix(std::span<const PrefixKey> keys) {
  std::vector<uint32_t> found;
  for (const PrefixKey& key : keys) {
    const auto it = by_key_.find(key);
    if (it == by_key_.end()) break;
    Block& block = blocks_[it->second];
    if (block.references++ == 0) cached_.erase(block.place);
    found.push_back(it->second);
  }
  return found;
}

void BlockPool::publish(uint32_t block, const PrefixKey& key) {
  Block& it = blocks_[block];
  if (it.published || !by_key_.emplace(key, block).second) return;
  it.published = true;
  it.key = key;
}

std::optional<BlockPool::Writable> BlockPool::make_writable(uint32_t block) {
  if (references(block) == 1 && !published(block)) return Writable{.block = block};
  // The block is given back first: if no other is free, take() gives the block itself, with its content.
  release(block);
  const std::optional<Taken> taken = take();
  if (!taken) {
    share(block);
    return std::nullopt;
  }
  return Writable{.block = taken->block, .copy = taken->block != block, .evicted = taken->evicted};
}

void BlockPool::unpublish(Block& block) {
  by_key_.erase(block.key);
  block.published = false;
}

Result<void> BlockPool::check() const {
  std::vector<uint32_t> listed(blocks_.size(), 0);
  for (const uint32_t block : empty_) ++listed[block];
  for (const uint32_t block : cached_) ++listed[block];
  size_t published_count = 0;
  for (uint32_t i = 0; i < block_count(); ++i) {
    const Block& block = blocks_[i];
    if (listed[i] != (block.references == 0 ? 1u : 0u)) {
      return fail(ErrorKind::kInternal, "Block %u has %u references and is listed as free %u times.", i,
                  block.references, listed[i]);
    }
    if (!block.published) continue;
    ++published_count;
    const auto it = by_key_.find(block.key);
    if (it == by_key_.end() || it->second != i)
      return fail(ErrorKind::kInternal, "Block %u is published, but its key does not name it.", i);
  }
  for (const uint32_t block : empty_) {
    if (blocks_[block].published)
      return fail(ErrorKind::kInternal, "Block %u is empty and published.", block);
  }
  for (const uint32_t block : cached_) {
    if (!blocks_[block].published)
      return fail(ErrorKind::kInternal, "Block %u is cached and not published.", block);
  }
  if (published_count != by_key_.size()) {
    return fail(ErrorKind::kInternal, "%zu keys name %zu published blocks.", by_key_.size(), published_count);
  }
  return {};
}

}  // namespace doppler::engine
