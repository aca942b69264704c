// window_blocks.h.
#include "engine/scheduler/window_blocks.h"

#include <algorithm>

namespace doppler::engine {

uint32_t WindowBlocks::first_seen(uint32_t position) const {
  const uint32_t before = runner_.window() - 1;
  return (position - std::min(position, before)) / pool_.block_len();
}

uint32_t WindowBlocks::end_before(uint32_t position) const {
  return (position + pool_.block_len() - 1) / pool_.block_len();
}

Unexpected WindowBlocks::none_free() const {
  return fail(ErrorKind::kInternal, "All %u blocks of layers with a window are held.", pool_.block_count());
}

Result<uint32_t> WindowBlocks::take() {
  const auto taken = pool_.take();
  if (!taken) return none_free();
  return taken->block;
}

size_t WindowBlocks::usable(std::span<const PrefixKey> keys, size_t found, uint32_t tokens) const {
  if (!has_layers()) return found;
  const uint32_t block_len = pool_.block_len();
  size_t best = 0;
  uint32_t there = 0;  // blocks that follow one another up to here
  for (uint32_t i = 0; i < found; ++i) {
    there = pool_.has(keys[i]) ? there + 1 : 0;
    // The last token is always evaluated.
    const uint32_t start = std::min((i + 1) * block_len, tokens - 1);
    if (there >= i + 1 - std::min(i + 1, first_seen(start))) best = i + 1;
  }
  return best;
}

Result<void> WindowBlocks::begin(WindowTable& table, std::span<const PrefixKey> keys, uint32_t start) {
  table = {};
  if (!has_layers()) return {};
  const uint32_t first = first_seen(start), end = end_before(start);
  table = {.first = first, .blocks = pool_.find_prefix(keys.subspan(first, end - first))};
  if (table.blocks.size() != end - first) {
    return fail(ErrorKind::kInternal, "The window before position %u has %zu blocks, not %u.", start,
                table.blocks.size(), end - first);
  }
  if (start % pool_.block_len() == 0) return {};
  const uint32_t shared = table.blocks.back();
  const auto own = pool_.make_writable(shared);
  if (!own) return none_free();
  table.blocks.back() = own->block;
  return own->copy ? runner_.copy_window_block(shared, own->block) : Result<void>();
}

Result<void> WindowBlocks::copy(WindowTable& table, const WindowTable& parent, uint32_t index) {
  if (!has_layers()) return {};
  if (table.blocks.empty()) table.first = index;
  DP_TRY(const uint32_t own, take());
  table.blocks.push_back(own);
  return runner_.copy_window_block(parent.blocks[index - parent.first], own);
}

Result<void> WindowBlocks::map(uint32_t slot, const WindowTable& table) {
  return table.blocks.empty() ? Result<void>() : runner_.map_window(slot, table.first, table.blocks);
}

Result<void> WindowBlocks::grow(uint32_t slot, WindowTable& table, uint32_t end) {
  if (!has_layers()) return {};
  const size_t before = table.blocks.size();
  while (table.first + table.blocks.size() < end_before(end)) {
    DP_TRY(const uint32_t block, take());
    table.blocks.push_back(block);
  }
  if (table.blocks.size() == before) return {};
  return runner_.map_window(slot, table.first + static_cast<uint32_t>(before),
                            std::span(table.blocks).subspan(before));
}

void WindowBlocks::pass(WindowTable& table, uint32_t next) {
  if (!has_layers()) return;
  const uint32_t passed = std::min(first_seen(next) - std::min(first_seen(next), table.first),
                                   static_cast<uint32_t>(table.blocks.size()));
  for (uint32_t i = 0; i < passed; ++i) pool_.release(table.blocks[i]);
  table.blocks.erase(table.blocks.begin(), table.blocks.begin() + passed);
  table.first += passed;
}

void WindowBlocks::publish(const WindowTable& table, uint32_t index, const PrefixKey& key) {
  if (table.has(index)) pool_.publish(table.blocks[index - table.first], key);
}

void WindowBlocks::release(WindowTable& table) {
  for (const uint32_t block : table.blocks) pool_.release(block);
  table = {};
}

}  // namespace doppler::engine
