// Cuts prompts of models with recurrent states so that their states are kept (state_checkpoints.h). A state stands
// after the whole evaluated text, so a sequence that shares a prefix needs a state at the prefix's end. This is after
// the part that a prompt has in common with others, and after its last full block, from where the conversation goes on.
// More are kept on trial where pieces end, for texts that turn out to begin alike.
#include <algorithm>

#include "engine/scheduler/scheduler.h"

namespace doppler::engine {
namespace {

size_t common_keys(const Sequence& a, const Sequence& b) {
  const auto differ = std::ranges::mismatch(a.keys, b.keys);
  return static_cast<size_t>(differ.in1 - a.keys.begin());
}

}  // namespace

// Plans the cuts of a prompt that begins after `start`, and whose first `shared` blocks are others' too.
void Scheduler::plan_cuts(Sequence& sequence, uint32_t start, size_t shared) const {
  sequence.cuts.clear();
  sequence.kept = start;
  if (runner_.checkpoint_count() == 0) return;
  const uint32_t block_len = runner_.block_len();
  const auto whole = static_cast<uint32_t>((sequence.tokens().size() - 1) / block_len);
  const uint32_t branch = std::min<uint32_t>(static_cast<uint32_t>(shared), whole);
  for (const uint32_t blocks : {branch, whole}) {
    if (blocks * block_len < start + config_.least_kept) continue;
    sequence.cuts.push_back(blocks * block_len);
    start = blocks * block_len;
  }
}

// True if another prompt under way will leave states after more of this one's text than the `found` blocks: then it is
// better to wait for them. If both go on together past the other's cuts, it gets another one.
bool Scheduler::states_come_soon(const Sequence& sequence, size_t found) const {
  if (runner_.checkpoint_count() == 0) return false;
  const uint32_t block_len = runner_.block_len();
  const size_t whole = (sequence.tokens().size() - 1) / block_len;
  const auto begin = static_cast<uint32_t>(found) * block_len;
  for (Sequence* other : running_) {
    if (other->phase != Phase::kPrefill) continue;
    const auto end = static_cast<uint32_t>(std::min(common_keys(sequence, *other), whole)) * block_len;
    if (end <= other->fed || end < begin + config_.least_kept) continue;
    auto next = std::ranges::upper_bound(other->cuts, end);
    const uint32_t last = next == other->cuts.begin() ? 0 : *std::prev(next);
    if (end >= std::max(last, begin) + config_.least_kept) other->cuts.insert(next, end);
    return true;
  }
  return false;
}

// The rows for the prompt's piece, at most `rows`: whole blocks if more come, so that states can be kept after them.
uint32_t Scheduler::rows_of_piece(const Sequence& sequence, uint32_t rows) const {
  rows = std::min(rows, sequence.piece_rows);
  const uint32_t rest = sequence.piece_end() - sequence.fed;
  if (rows != 0) rows = runner_.uncut_rows(std::span(sequence.tokens()).subspan(sequence.fed, rest), rows);
  const uint32_t end = sequence.fed + rows;
  if (runner_.checkpoint_count() == 0 || end == sequence.piece_end()) return rows;
  const uint32_t whole = end / runner_.block_len() * runner_.block_len();
  return whole > sequence.fed ? whole - sequence.fed : rows;
}

// Called after a step with a piece of its prompt.
Result<void> Scheduler::keep_states(Sequence& sequence) {
  const uint32_t block_len = runner_.block_len();
  const bool is_cut = !sequence.cuts.empty() && sequence.fed == sequence.cuts.front();
  if (is_cut) sequence.cuts.erase(sequence.cuts.begin());
  const bool may_keep = runner_.checkpoint_count() != 0 && sequence.fed % block_len == 0;
  if (!is_cut && !(may_keep && sequence.fed >= sequence.kept + config_.kept_stride)) return {};
  sequence.kept = sequence.fed;
  return states_.save(sequence.slot, sequence.keys[sequence.fed / block_len - 1], /*on_trial=*/!is_cut);
}

}  // namespace doppler::engine
