// Blocks of sequences in slots: growth before a decode step, preemption where the pool is used up, publishing of full
// blocks, release when the last ticket is collected.
#include <algorithm>

#include "base/stable_order.h"
#include "engine/scheduler/scheduler.h"

namespace doppler::engine {

Scheduler::Rank Scheduler::rank(const Sequence& sequence, Clock::time_point now) const {
  return {.level = waiting_.level(sequence, now), .serial = sequence.serial};
}

// Maps the blocks that `steps` decode steps may write. Where the pool has too few, it takes fewer steps, then leaves
// out those of the lowest rank, for which room is made.
Result<void> Scheduler::grow(std::vector<Sequence*>& decoding, uint32_t& steps) {
  BlockPool& pool = blocks_.pool();
  const auto lacking = [&](const Sequence* s) {
    const uint32_t needed = blocks_of(s->positions(steps), pool.block_len());
    return needed > s->blocks.size() ? needed - static_cast<uint32_t>(s->blocks.size()) : 0;
  };
  const auto fits = [&] {
    uint64_t sum = 0;
    for (const Sequence* s : decoding) sum += lacking(s);
    return sum <= pool.free_count();
  };
  while (steps > 1 && !fits()) steps /= 2;
  while (!fits() && make_room()) {
    std::erase_if(decoding, [](const Sequence* s) { return !s->running(); });
  }
  if (!fits()) {
    const Clock::time_point now = config_.now();
    const std::vector<Sequence*> given = decoding;
    decoding.clear();
    for (const uint32_t i : stable_order(given.size(), [&](uint32_t a, uint32_t b) {
           return rank(*given[b], now).below(rank(*given[a], now));
         })) {
      decoding.push_back(given[i]);
    }
    uint64_t left = pool.free_count();
    std::erase_if(decoding, [&](const Sequence* s) {
      const uint32_t need = lacking(s);
      if (need > left) return true;
      left -= need;
      return false;
    });
  }
  for (Sequence* s : decoding) {
    const auto first = static_cast<uint32_t>(s->blocks.size());
    for (uint32_t more = lacking(s); more > 0; --more) {
      DP_TRY(const uint32_t block, blocks_.take());
      s->blocks.push_back(block);
    }
    if (s->blocks.size() > first) DP_CHECK(runner_.map(s->slot, first, std::span(s->blocks).subspan(first)));
    DP_CHECK(windows_.grow(s->slot, s->windows, s->positions(steps)));
  }
  return {};
}

// The running sequence of the lowest rank; null: none runs, or one leaves, whose slot and blocks are on their way back.
Sequence* Scheduler::lowest() const {
  const Clock::time_point now = config_.now();
  Sequence* lowest = nullptr;
  for (Sequence* s : running_) {
    if (s->leaving()) return nullptr;
    if (!lowest || rank(*s, now).below(rank(*lowest, now))) lowest = s;
  }
  return lowest;
}

// true: its slot and blocks are free now; false: they are when its tickets are collected.
bool Scheduler::preempt(Sequence& sequence) {
  sequence.phase = Phase::kPreempted;
  ++sequence.stream->timings_.preemptions;
  if (sequence.in_flight > 0) return false;
  release(sequence);
  return true;
}

// Preempts the running sequence of the lowest rank, unless it is the only one. true: blocks are free now.
bool Scheduler::make_room() {
  Sequence* const last = lowest();
  return last && running_.size() > 1 && preempt(*last);
}

// The key of the first full block that has none. Adapters belong to the keys from the block in which they begin.
PrefixKey Scheduler::next_key(const Sequence& sequence) const {
  const BlockPool& pool = blocks_.pool();
  const Request& request = sequence.request;
  const size_t at = sequence.keys.size(), block_len = pool.block_len();
  PrefixKey parent = at == 0 ? pool.root_key(request.extras) : sequence.keys[at - 1];
  if (!request.adapter_key.empty() && at == request.settings.adapters_from / block_len) {
    std::vector<uint32_t> words = request.adapter_key;
    words.push_back(request.settings.adapters_from);
    parent = pool.key_of(parent, words);
  }
  return pool.key_of(parent, std::span(sequence.tokens()).subspan(at * block_len, block_len));
}

// Offers the blocks that have become full to the pool, under the keys of their tokens.
void Scheduler::publish(Sequence& sequence) {
  BlockPool& pool = blocks_.pool();
  const uint32_t full = sequence.known_positions() / pool.block_len();
  for (; sequence.published < full; ++sequence.published) {
    const uint32_t at = sequence.published;
    if (sequence.keys.size() == at) sequence.keys.push_back(next_key(sequence));
    pool.publish(sequence.blocks[at], sequence.keys[at]);
    windows_.publish(sequence.windows, at, sequence.keys[at]);
  }
}

// The tokens whose keys and values are there, when no step of the sequence is queued.
std::vector<uint32_t> Scheduler::known_tokens(const Sequence& sequence) {
  const std::span<const uint32_t> known = std::span(sequence.tokens()).first(sequence.known_positions());
  return {known.begin(), known.end()};
}

// Slot and blocks are free again. One that was preempted goes back to the queue; one that has ended is gone.
void Scheduler::release(Sequence& sequence) {
  BlockPool& pool = blocks_.pool();
  // After an error nobody knows what its keys and values are.
  const bool is_sound = runner_.holds_text() && !sequence.stream->error();
  held_ = is_sound ? known_tokens(sequence) : std::vector<uint32_t>();
  held_extras_ = all_extras(sequence.request);
  runner_.end(sequence.slot);
  // Last block first: the pool reuses them in this order, and a prefix is of use only from its beginning on.
  for (size_t i = sequence.blocks.size(); i-- > 0;) pool.release(sequence.blocks[i]);
  sequence.blocks.clear();
  windows_.release(sequence.windows);
  free_slots_.push_back(sequence.slot);
  std::erase(running_, &sequence);
  if (sequence.phase == Phase::kPreempted) {
    sequence.phase = Phase::kWaiting;
    sequence.fed = sequence.feed_to = sequence.published = 0;
    waiting_.push(sequence);
  } else {
    waiting_.refund(sequence);
    sequences_.erase(sequence.serial);
  }
}

}  // namespace doppler::engine
