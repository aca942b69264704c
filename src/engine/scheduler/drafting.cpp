// Decode steps that draft: the drafter, the rows of the next steps, and the results of tickets. Read next:
// draft_policy.h.
#include <algorithm>
#include <utility>

#include "engine/scheduler/scheduler.h"

namespace doppler::engine {
namespace {

constexpr uint32_t kTicketsBetweenPlans = 2;

}  // namespace

// Begins to make the next plan that so many slots need. false: all are there, or they cannot be made.
bool Scheduler::prepare_drafts(const model::DraftNeed& need, uint32_t slots) {
  if (!runner_.may_prepare_drafts(need, slots)) return false;
  if (preparing_.valid()) return true;
  prepares_drafts_ = true;
  preparing_ = runner_.prepare_drafts(need, slots);
  preparing_.start();
  return true;
}

// The host makes a plan in about the time of two tickets. So many are queued after each one, or the GPU would wait.
void Scheduler::prepare_next_plan(const model::DraftNeed& need, uint32_t slots) {
  if (tickets_to_plan_ > 0) {
    --tickets_to_plan_;
  } else if (prepare_drafts(need, slots)) {
    tickets_to_plan_ = kTicketsBetweenPlans;
  }
}

// Says whether the drafter has guesses now. The policy learns from those that the host makes itself.
bool Scheduler::finds_drafts(Sequence& sequence) const {
  const model::GenerationSettings& settings = sequence.request.settings;
  if (settings.drafter != model::Drafter::kLookup && !sequence.guided()) return true;
  const std::span<const uint32_t> tokens = sequence.tokens();
  Guesses guesses;
  if (sequence.indexed == 0) {  // a prompt that repeats itself says nothing about the answer
    sequence.index.add(settings.prediction);
    sequence.index.add(tokens);
  } else {
    guesses = sequence.index.add(tokens.subspan(sequence.indexed));
  }
  sequence.indexed = tokens.size();
  sequence.drafts.foresee(guesses.right, guesses.wrong);
  return sequence.index.repeats();
}

model::DraftNeed Scheduler::need_of(const Sequence& sequence) const {
  model::DraftNeed need = draft_need_of(sequence.request.settings);
  if (need.drafter == model::Drafter::kLookup && runner_.drafts_by_host())
    need.drafter = model::Drafter::kGiven;
  return need;
}

StepCosts& Scheduler::costs_of(const Sequence& sequence) {
  return need_of(sequence).drafter == model::Drafter::kGiven ? given_costs_ : costs_;
}

// A draft model goes on from the whole text, and so does the host's search. So all tickets must have come back.
bool Scheduler::waits_for_drafts(const Sequence& sequence) {
  const model::DraftNeed need = need_of(sequence);
  if (need.drafter != model::Drafter::kGiven || runner_.max_sequences() > 1) return false;
  const bool is_model = sequence.request.settings.drafter == model::Drafter::kModel;
  if (is_model && (!config_.drafter || running_.size() != 1)) return false;
  const bool finds = is_model || sequence.index.repeats();
  return sequence.drafts.next(runner_.draft_rows(need), costs_of(sequence), 1, finds).rows > 1;
}

Task<Result<void>> Scheduler::propose_drafts() {
  if (running_.size() != 1 || !running_.front()->may_decode() || running_.front()->in_flight > 0)
    co_return Result<void>();
  Sequence& sequence = *running_.front();
  sequence.proposed.clear();
  const bool is_model = sequence.request.settings.drafter == model::Drafter::kModel;
  if (!is_model || !waits_for_drafts(sequence)) co_return Result<void>();
  const std::span<const uint32_t> rows = runner_.draft_rows(need_of(sequence));
  const DraftSteps steps = sequence.drafts.next(rows, costs_of(sequence), 1, true);
  const std::shared_ptr<Stream> stream =
      sequence.stream;  // a cancelled one's tokens stay until they are read
  auto proposing = config_.drafter->propose(stream->sequence(), steps.rows - 1);
  DP_CO_TRY(std::vector<uint32_t> proposed, co_await std::move(proposing));
  if (running_.size() == 1 && running_.front()->stream == stream)
    running_.front()->proposed = std::move(proposed);
  co_return Result<void>();
}

Result<void> Scheduler::choose_drafts(Sequence& sequence, model::DecodeSteps& steps) {
  const model::GenerationSettings& settings = sequence.request.settings;
  const DraftUse use = sequence.drafts.use();
  if (use == DraftUse::kNever || settings.drafter == model::Drafter::kNone) return {};
  const model::DraftNeed need = need_of(sequence);
  const std::span<const uint32_t> rows = runner_.draft_rows(need);
  const bool may_prepare = runner_.may_prepare_drafts(need, 1);
  if (rows.empty() && !may_prepare) return {};
  const bool is_model = settings.drafter == model::Drafter::kModel;
  const bool finds = use == DraftUse::kAlways || is_model || finds_drafts(sequence);
  if (may_prepare && sequence.drafts.wants(finds)) prepare_next_plan(need, 1);
  if (rows.empty()) return {};
  if (need.drafter == model::Drafter::kGiven) return give_drafts(sequence, rows, steps);
  const DraftSteps chosen = sequence.drafts.choose(rows, costs_, steps.steps * steps.submits, finds);
  if (chosen.rows > 1 || chosen.steps < steps.steps * steps.submits)
    steps = {.steps = chosen.steps, .rows = chosen.rows};
  return {};
}

// Keeps the drafts that the guide allows, one after the other. Each row gets the mask that it would have without
// drafts.
Result<std::vector<uint32_t>> Scheduler::allowed_drafts(Sequence& sequence,
                                                        std::span<const uint32_t> drafts) {
  std::vector<uint32_t> out;
  sequence.masks = {sequence.mask};
  const std::unique_ptr<Guide> ahead = sequence.request.guide->clone();
  for (size_t i = 0; ahead && i < drafts.size(); ++i) {
    const uint32_t draft = drafts[i];
    const std::vector<uint32_t>& mask = sequence.masks.back();
    if (draft / 32 >= mask.size() || (mask[draft / 32] >> draft % 32 & 1) == 0) break;
    DP_TRY(const bool goes_on, ahead->accept(draft));
    if (!goes_on) break;
    out.push_back(draft);
    DP_TRY(std::vector<uint32_t> allowed, ahead->allowed());
    sequence.masks.push_back(std::move(allowed));
  }
  return out;
}

// The host gives the drafts of the next step. They come from a draft model. For a guided sequence, whose whole text is
// known before each step, they come from a search in the text.
Result<void> Scheduler::give_drafts(Sequence& sequence, std::span<const uint32_t> rows,
                                    model::DecodeSteps& steps) {
  const bool is_model = sequence.request.settings.drafter == model::Drafter::kModel;
  sequence.given = std::exchange(sequence.proposed, {});
  if (sequence.in_flight > 0) return {};
  if (!is_model && finds_drafts(sequence)) sequence.given = sequence.index.drafts(rows.back() - 1);
  if (sequence.guided()) {
    DP_TRY(sequence.given, allowed_drafts(sequence, sequence.given));
  }
  if (sequence.given.empty()) return {};
  // Take the fewest rows that hold all drafts.
  size_t kinds = 1;
  while (kinds < rows.size() && rows[kinds - 1] <= sequence.given.size()) ++kinds;
  const DraftSteps chosen = sequence.drafts.choose(rows.first(kinds), given_costs_, 1, true);
  if (chosen.rows == 1) return {};
  const size_t held = std::min<size_t>(sequence.given.size(), chosen.rows - 1);
  sequence.given.resize(held);
  steps = {.steps = 1, .rows = chosen.rows};
  return {};
}

// The drafts of each slot in a step with so many rows of a slot, which are in `given`. Masks are those of all rows.
std::vector<model::SlotDrafts> Scheduler::given_drafts(const std::vector<Sequence*>& decoding,
                                                       uint32_t rows) {
  std::vector<model::SlotDrafts> out;
  for (Sequence* const s : decoding) {
    s->given.resize(std::min<size_t>(s->given.size(), rows - 1));
    if (s->given.empty() && s->guided()) s->masks = {s->mask};
    out.push_back({.tokens = s->given});
    if (s->guided()) out.back().masks = std::span(s->masks).first(s->given.size() + 1);
  }
  return out;
}

// Counts the drafts of a decode ticket of one sequence, and times its steps.
void Scheduler::note_decode(Sequence& sequence, const model::Ticket& ticket,
                            std::span<const uint32_t> entries) {
  const Clock::time_point now = config_.now();
  const std::chrono::duration<double> took = now - std::exchange(sequence.tokens_at, now);
  const DraftOutcome outcome = outcome_of(ticket.rows, entries);
  StepCosts& costs = costs_of(sequence);
  // A step that waited for a draft model ran with nothing queued after it, so the next ticket is late too.
  const bool has_waited = sequence.request.settings.drafter == model::Drafter::kModel && ticket.rows > 1;
  const bool is_late = std::exchange(sequence.has_waited, has_waited) && ticket.rows == 1;
  if (has_waited || is_late)
    sequence.drafts.charge(costs.beyond(outcome.steps * costs.most(ticket.rows), took.count()));
  if (!is_late && sequence.seen() != 0 && outcome.tokens >= outcome.steps)
    costs.note(ticket.rows, outcome.steps, took.count());
  sequence.drafts.note(outcome, costs);
  if (ticket.rows > 1) sequence.stream->timings_.drafts.add(entries, ticket.rows);
}

}  // namespace doppler::engine
