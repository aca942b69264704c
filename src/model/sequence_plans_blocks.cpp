// SequencePlans' memory: blocks of the cache that slots have and that are copied, read and written, and checkpoints of
// recurrent states.
#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "model/sequence_plans.h"

namespace doppler::model {
namespace {

constexpr uint64_t kSequencePlansBlocksWord = sizeof(uint32_t);

}  // namespace

Result<void> SequencePlans::check_block(uint32_t block, bool in_windows) const {
  const uint32_t count = in_windows ? buffers_.window_blocks : block_count_;
  if (block < count) return {};
  return fail(ErrorKind::kInternal, "Block %u was named; the pool has %u.", block, count);
}

Result<void> SequencePlans::map(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) {
  return map(slot, first, blocks, false);
}

Result<void> SequencePlans::map_window(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) {
  return map(slot, first, blocks, true);
}

Result<void> SequencePlans::map(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks,
                                bool in_windows) {
  DP_CHECK(check_slot(slot));
  if (first > tables_.blocks || blocks.size() > tables_.blocks - first) {
    return fail(ErrorKind::kInternal, "Blocks %u to %zu were mapped; a slot has %u.", first,
                first + blocks.size(), tables_.blocks);
  }
  for (const uint32_t block : blocks) DP_CHECK(check_block(block, in_windows));
  if (blocks.empty()) return {};
  const std::vector<uint32_t> entries(blocks.begin(), blocks.end());
  const uint64_t table = in_windows ? tables_.windows_table() : tables_.blocks_table();
  const uint64_t at = table + (uint64_t{slot} * tables_.blocks + first) * kSequencePlansBlocksWord;
  return device_.write(*buffers_.state, at, bytes_of(entries));
}

// A block of all layers of a pool from the cache into the block buffer, or back.
gpu::Plan SequencePlans::block_copy(uint32_t block, bool into_cache, bool in_windows) const {
  gpu::Plan plan{.name = into_cache ? "many.write_block" : "many.read_block", .words = {}, .entries = {}};
  uint64_t place = 0;  // in the block buffer
  for (const CachePlace& cache : buffers_.caches) {
    if (cache.in_windows != in_windows) continue;
    const uint64_t bytes = cache.block_bytes;
    const auto in_cache = static_cast<uint32_t>((cache.offset + block * bytes) / kSequencePlansBlocksWord);
    const auto beside = static_cast<uint32_t>(place / kSequencePlansBlocksWord);
    place += bytes;
    const uint32_t from = into_cache ? buffers_.block->id() : cache.buffer->id();
    const uint32_t to = into_cache ? cache.buffer->id() : buffers_.block->id();
    const uint32_t words[gpu::kPlanCommandWords] = {gpu::kCopy,
                                                    from,
                                                    into_cache ? beside : in_cache,
                                                    to,
                                                    into_cache ? in_cache : beside,
                                                    static_cast<uint32_t>(bytes / kSequencePlansBlocksWord)};
    plan.words.insert(plan.words.end(), std::begin(words), std::end(words));
  }
  return plan;
}

Result<void> SequencePlans::place(uint32_t slot, uint32_t pos, uint32_t token) {
  DP_CHECK(check_slot(slot));
  const std::array<uint32_t, 2> words = {pos, token};  // the first of a SequenceRecord
  const uint64_t at = tables_.records() + slot * sizeof(kernels::SequenceRecord);
  return device_.write(*buffers_.state, at, bytes_of(words));
}

Result<void> SequencePlans::copy_block(uint32_t from, uint32_t to) { return copy(from, to, false); }
Result<void> SequencePlans::copy_window_block(uint32_t from, uint32_t to) { return copy(from, to, true); }

// By way of the block buffer, since WebGPU copies between two buffers only.
Result<void> SequencePlans::copy(uint32_t from, uint32_t to, bool in_windows) {
  DP_CHECK(check_block(from, in_windows));
  DP_CHECK(check_block(to, in_windows));
  const gpu::Plan out = block_copy(from, false, in_windows), in = block_copy(to, true, in_windows);
  const gpu::Work works[] = {{.plan = &out}, {.plan = &in}};
  return device_.submit(works);
}

Task<Result<std::vector<uint8_t>>> SequencePlans::read_block(uint32_t block) {
  DP_CO_CHECK(check_block(block));
  const auto unused = std::ranges::find(reading_, false);
  if (unused == reading_.end()) {
    co_return fail(ErrorKind::kInternal, "%u blocks are being read already; no more are allowed.",
                   max_block_reads());
  }
  const auto slot = static_cast<uint32_t>(unused - reading_.begin());
  const gpu::Plan out = block_copy(block, false);
  const gpu::Work work{.plan = &out};
  const gpu::ReadbackRequest request{
      .ring = &block_readback_,
      .slot = slot,
      .from = {.buffer = buffers_.block->id(), .offset = 0, .bytes = block_bytes()}};
  DP_CO_CHECK(device_.submit({&work, 1}, &request));
  reading_[slot] = true;
  auto bytes = co_await device_.read(block_readback_, slot, block_bytes());
  reading_[slot] = false;
  co_return bytes;
}

Task<Result<void>> SequencePlans::write_block(uint32_t block, std::span<const uint8_t> bytes) {
  DP_CO_CHECK(check_block(block));
  if (bytes.size() != block_bytes()) {
    co_return fail(ErrorKind::kInvalidInput, "A saved block has %zu bytes; this model's blocks have %llu.",
                   bytes.size(), static_cast<unsigned long long>(block_bytes()));
  }
  DP_CO_CHECK(device_.write(*buffers_.block, 0, bytes));
  const gpu::Plan in = block_copy(block, true);
  const gpu::Work work{.plan = &in};
  co_return device_.submit({&work, 1});
}

Result<void> SequencePlans::check_states(uint32_t slot, uint32_t checkpoint) const {
  DP_CHECK(check_slot(slot));
  if (checkpoint < buffers_.checkpoints) return {};
  return fail(ErrorKind::kInternal, "Checkpoint %u was named; there are %u.", checkpoint,
              buffers_.checkpoints);
}

Result<void> SequencePlans::save_states(uint32_t slot, uint32_t checkpoint) {
  DP_CHECK(check_states(slot, checkpoint));
  return buffers_.states->save_slot(device_, slot, checkpoint);
}

Result<void> SequencePlans::load_states(uint32_t checkpoint, uint32_t slot) {
  DP_CHECK(check_states(slot, checkpoint));
  return buffers_.states->load_slot(device_, checkpoint, slot);
}

}  // namespace doppler::model
