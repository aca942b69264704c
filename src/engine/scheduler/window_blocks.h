// The blocks of layers that see a window (SequenceRunner::window): each sequence in a slot holds those that its next
// rows see, and gives the others back as soon as the steps that read them are queued, since calls are in order. The
// pool has enough for all slots, so that a block is always free. Prefixes are found here under the keys of the blocks
// of the layers that see everything (block_pool.h), the last ones longest. A model without such layers needs none of
// this.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/scheduler/block_pool.h"
#include "model/sequence_runner.h"

namespace doppler::engine {

// The table of a sequence: blocks[i] is entry first + i of its slot's table.
struct WindowTable {
  uint32_t first = 0;
  std::vector<uint32_t> blocks;
  bool has(uint32_t index) const { return index >= first && index - first < blocks.size(); }
};

class WindowBlocks {
 public:
  // `runner` must outlive it.
  WindowBlocks(model::SequenceRunner& runner, PrefixSecret secret)
      : runner_(runner), pool_(runner.window_block_count(), runner.block_len(), secret) {}
  const BlockPool& pool() const { return pool_; }

  // The most of the `found` first blocks after which a text of `tokens` tokens can begin: the window before the first
  // row to evaluate is there.
  size_t usable(std::span<const PrefixKey> keys, size_t found, uint32_t tokens) const;
  // References to what a row at `start` sees. Where it stands inside a block, that is the table's own from then on.
  Result<void> begin(WindowTable& table, std::span<const PrefixKey> keys, uint32_t start);
  // Takes a copy of the parent's block `index`, after those of the table. Precondition: parent.has(index).
  Result<void> copy(WindowTable& table, const WindowTable& parent, uint32_t index);
  // Writes the table to the slot.
  Result<void> map(uint32_t slot, const WindowTable& table);
  // Takes and maps what rows up to position `end` will write.
  Result<void> grow(uint32_t slot, WindowTable& table, uint32_t end);
  // Gives back what rows from position `next` on do not see.
  void pass(WindowTable& table, uint32_t next);
  // A full block, if the table still has it.
  void publish(const WindowTable& table, uint32_t index, const PrefixKey& key);
  void release(WindowTable& table);

 private:
  bool has_layers() const { return runner_.window() != 0; }
  // The first entry that a row at this position sees, and the one after the last that is written before it.
  uint32_t first_seen(uint32_t position) const;
  uint32_t end_before(uint32_t position) const;
  Result<uint32_t> take();
  Unexpected none_free() const;

  model::SequenceRunner& runner_;
  BlockPool pool_;
};

}  // namespace doppler::engine
