// Tokens that a guide forces: appended at once, and evaluated together as a piece of a prompt, whose last row chooses
// the next token. The slot begins again after its evaluated tokens, as one does that was preempted.
#include <algorithm>

#include "engine/scheduler/scheduler.h"

namespace doppler::engine {
namespace {

// A single one is a step either way, and a piece costs more than a decode step.
constexpr size_t kLeastForced = 2;

}  // namespace

// Called after a token of a guided sequence that has not ended. If something forbids it, the guide's mask leaves only
// these tokens, and they come step by step: the text is the same.
Result<void> Scheduler::append_forced(Sequence& sequence) {
  // A token that nobody evaluated has no log-probability when it is told.
  if (!config_.appends_forced || sequence.request.settings.sampling.logprobs != 0) return {};
  const BlockPool& pool = blocks_.pool();
  const auto len = static_cast<uint32_t>(sequence.tokens().size());
  DP_TRY(std::vector<uint32_t> forced, sequence.request.guide->forced());
  if (sequence.phase == Phase::kDecode) {
    const uint64_t held = (sequence.blocks.size() + uint64_t{pool.free_count()}) * pool.block_len();
    forced.resize(std::min<uint64_t>(forced.size(), held - std::min<uint64_t>(held, len)));
  }
  if (forced.size() < kLeastForced) return {};
  for (const uint32_t token : forced) {
    take(sequence, token);
    ++sequence.stream->timings_.forced_tokens;
    if (sequence.stream->ended()) return {};
  }
  // One that is preempted is evaluated when it begins again.
  return sequence.phase == Phase::kDecode ? evaluate_forced(sequence, len - 1) : Result<void>();
}

// The token at `from` was chosen and not evaluated; the tokens after it were forced.
Result<void> Scheduler::evaluate_forced(Sequence& sequence, uint32_t from) {
  const auto len = static_cast<uint32_t>(sequence.tokens().size());
  while (sequence.blocks.size() < blocks_of(len, blocks_.pool().block_len())) {
    DP_TRY(const uint32_t block, blocks_.take());
    sequence.blocks.push_back(block);
  }
  return begin_in_slot(sequence, from);
}

}  // namespace doppler::engine
