// Decode steps that draft: whether the drafter has something to say, how many rows the next steps have, and what tickets
// say of that when they come back. Read next: draft_policy.h.
#include <algorithm>
#include <utility>

#include "engine/scheduler/scheduler.h"

namespace doppler::engine {

// Begins to make the plans that the settings' drafter needs. false: they are there, or they cannot be had.
bool Scheduler::prepare_drafts(const model::GenerationSettings& settings) {
  if (!runner_.may_prepare_drafts(settings)) return false;
  if (preparing_.valid()) return true;
  preparing_for_ = settings;
  prepares_drafts_ = true;
  preparing_ = runner_.prepare_drafts(preparing_for_);
  preparing_.start();
  return true;
}

bool Scheduler::finds_drafts(Sequence& sequence) const {
  const model::GenerationSettings& settings = sequence.request.settings;
  if (settings.drafter != model::Drafter::kLookup && !sequence.guided()) return true;
  if (sequence.indexed == 0) sequence.index.add(settings.prediction);
  const std::span<const uint32_t> tokens = sequence.tokens();
  sequence.index.add(tokens.subspan(sequence.indexed));
  sequence.indexed = tokens.size();
  return sequence.index.repeats();
}

Result<void> Scheduler::choose_drafts(Sequence& sequence, model::DecodeSteps& steps) {
  const model::GenerationSettings& settings = sequence.request.settings;
  const DraftUse use = sequence.drafts.use();
  if (use == DraftUse::kNever || settings.drafter == model::Drafter::kNone) return {};
  const std::span<const uint32_t> rows = runner_.draft_rows(settings);
  if (rows.empty() && !runner_.may_prepare_drafts(settings)) return {};
  const bool always = use == DraftUse::kAlways && !sequence.guided();
  const bool finds = always || finds_drafts(sequence);
  if (rows.empty()) {
    if (sequence.drafts.wants(finds)) prepare_drafts(settings);
    return {};
  }
  if (sequence.guided()) return guide_drafts(sequence, rows, steps);
  const DraftSteps chosen = sequence.drafts.choose(rows, costs_, steps.steps * steps.submits, finds);
  if (chosen.rows > 1) steps = {.steps = chosen.steps, .rows = chosen.rows};
  return {};
}

// The host drafts for a guided sequence, whose whole text it knows before each step: what the guide allows of what it
// finds. Each row has the mask that it would have without drafts.
Result<void> Scheduler::guide_drafts(Sequence& sequence, std::span<const uint32_t> rows,
                                     model::DecodeSteps& steps) {
  sequence.given.clear();
  sequence.masks = {sequence.mask};
  const std::unique_ptr<Guide> ahead = sequence.request.guide->clone();
  if (!ahead || !finds_drafts(sequence)) return {};
  for (const uint32_t draft : sequence.index.drafts(rows.back() - 1)) {
    const std::vector<uint32_t>& mask = sequence.masks.back();
    const bool is_allowed = draft / 32 < mask.size() && (mask[draft / 32] >> draft % 32 & 1) != 0;
    if (!is_allowed) break;
    DP_TRY(const bool goes_on, ahead->accept(draft));
    if (!goes_on) break;
    sequence.given.push_back(draft);
    DP_TRY(std::vector<uint32_t> allowed, ahead->allowed());
    sequence.masks.push_back(std::move(allowed));
  }
  if (sequence.given.empty()) return {};
  // The fewest rows that hold them all.
  size_t kinds = 1;
  while (kinds < rows.size() && rows[kinds - 1] <= sequence.given.size()) ++kinds;
  const DraftSteps chosen = sequence.drafts.choose(rows.first(kinds), guided_costs_, 1, true);
  if (chosen.rows == 1) return {};
  const size_t held = std::min<size_t>(sequence.given.size(), chosen.rows - 1);
  steps = {.steps = 1,
           .rows = chosen.rows,
           .given = std::span(sequence.given).first(held),
           .masks = std::span(sequence.masks).first(held + 1)};
  return {};
}

// Counts the drafts of a decode ticket of one sequence, and times its steps.
void Scheduler::note_decode(Sequence& sequence, const model::Ticket& ticket,
                            std::span<const uint32_t> entries) {
  const Clock::time_point now = config_.now();
  const std::chrono::duration<double> took = now - std::exchange(sequence.tokens_at, now);
  const DraftOutcome outcome = outcome_of(ticket.rows, entries);
  StepCosts& costs = sequence.guided() ? guided_costs_ : costs_;
  if (sequence.seen() != 0 && outcome.tokens >= outcome.steps)
    costs.note(ticket.rows, outcome.steps, took.count());
  sequence.drafts.note(outcome, costs);
  if (ticket.rows > 1) sequence.stream->timings_.drafts.add(entries, ticket.rows);
}

}  // namespace doppler::engine
