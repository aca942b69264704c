// Decode steps that draft: whether the drafter has something to say, how many rows the next steps have, and what tickets
// say of that when they come back. Read next: draft_policy.h.
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
  if (settings.drafter != model::Drafter::kLookup) return true;
  if (sequence.indexed == 0) sequence.index.add(settings.prediction);
  const std::span<const uint32_t> tokens = sequence.tokens();
  sequence.index.add(tokens.subspan(sequence.indexed));
  sequence.indexed = tokens.size();
  return sequence.index.repeats();
}

void Scheduler::choose_drafts(Sequence& sequence, model::DecodeSteps& steps) {
  const model::GenerationSettings& settings = sequence.request.settings;
  const DraftUse use = sequence.drafts.use();
  if (use == DraftUse::kNever || settings.drafter == model::Drafter::kNone) return;
  const std::span<const uint32_t> rows = runner_.draft_rows(settings);
  if (rows.empty() && !runner_.may_prepare_drafts(settings)) return;
  const bool finds = use == DraftUse::kAlways || finds_drafts(sequence);
  if (rows.empty()) {
    if (sequence.drafts.wants(finds)) prepare_drafts(settings);
    return;
  }
  const DraftSteps chosen = sequence.drafts.choose(rows, costs_, steps.steps * steps.submits, finds);
  if (chosen.rows > 1) steps = {.steps = chosen.steps, .rows = chosen.rows};
}

// Counts the drafts of a decode ticket of one sequence, and times its steps.
void Scheduler::note_decode(Sequence& sequence, const model::Ticket& ticket,
                            std::span<const uint32_t> entries) {
  const Clock::time_point now = config_.now();
  const std::chrono::duration<double> took = now - std::exchange(sequence.tokens_at, now);
  const DraftOutcome outcome = outcome_of(ticket.rows, entries);
  if (sequence.seen() != 0 && outcome.tokens >= outcome.steps)
    costs_.note(ticket.rows, outcome.steps, took.count());
  sequence.drafts.note(outcome, costs_);
  if (ticket.rows > 1) sequence.stream->timings_.drafts.add(entries, ticket.rows);
}

}  // namespace doppler::engine
