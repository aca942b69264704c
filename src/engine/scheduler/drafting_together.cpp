// Steps in which several sequences draft. The host gives the drafts. So all tickets must have come back before such a
// step, and the host knows each text. Read next: draft_shares.h (who gets how many), drafting.cpp (one sequence).
#include <algorithm>
#include <utility>

#include "engine/scheduler/draft_shares.h"
#include "engine/scheduler/scheduler.h"

namespace doppler::engine {
namespace {

// Entries of the slot in a ticket.
std::vector<uint32_t> entries_of(std::span<const uint32_t> tokens, uint32_t slot, uint32_t sequences) {
  std::vector<uint32_t> out;
  for (size_t at = slot; at < tokens.size(); at += sequences) out.push_back(tokens[at]);
  return out;
}

}  // namespace

// Puts the sequence's next drafts into `given`. Returns whether plans for them are worth making.
Result<bool> Scheduler::propose_together(Sequence& sequence) {
  sequence.given.clear();
  const model::GenerationSettings& settings = sequence.request.settings;
  const DraftUse use = sequence.drafts.use();
  const model::Drafter drafter = draft_need_of(settings).drafter;
  const bool searches =
      drafter == model::Drafter::kLookup || (sequence.guided() && drafter != model::Drafter::kNone);
  if (use == DraftUse::kNever || !searches) return false;
  const bool finds = finds_drafts(sequence);
  if (!sequence.drafts.wants(finds || use == DraftUse::kAlways)) return false;
  // The answer's last token is chosen by the row after the last draft.
  const uint32_t most =
      std::min(sequence.drafts.most_rows(), sequence.limit - std::min(sequence.asked, sequence.limit));
  if (finds && most > 1) sequence.given = sequence.index.drafts(most - 1);
  if (!sequence.given.empty() && sequence.guided()) {
    DP_TRY(sequence.given, allowed_drafts(sequence, sequence.given));
  }
  return true;
}

// Says whether the next step drafts, and then sets its rows. A choice while tickets are in flight is a guess.
Result<bool> Scheduler::choose_together(const std::vector<Sequence*>& decoding, model::DecodeSteps& steps) {
  const bool in_prefill =
      std::ranges::any_of(running_, [](const Sequence* s) { return s->phase == Phase::kPrefill; });
  if (runner_.max_sequences() == 1 || decoding.empty() || in_prefill) return false;
  const auto slots = static_cast<uint32_t>(decoding.size());
  std::vector<DraftOffer> offers;
  model::DraftNeed need = draft_need_of(decoding[0]->request.settings);
  bool wants_plans = false;
  for (Sequence* const s : decoding) {
    need = together(need, draft_need_of(s->request.settings));
    DP_TRY(const bool wants, propose_together(*s));
    wants_plans = wants_plans || wants;
    offers.push_back({.drafts = static_cast<uint32_t>(s->given.size()),
                      .acceptance = s->drafts.acceptance(),
                      .account = s->drafts.account(),
                      .always = s->drafts.use() == DraftUse::kAlways});
  }
  if (!wants_plans) return false;
  if (runner_.may_prepare_drafts(need, slots)) prepare_next_plan(need, slots);
  const std::vector<uint32_t> shares = share_drafts(offers, runner_.draft_rows(need), together_costs_);
  for (size_t i = 0; i < decoding.size(); ++i) decoding[i]->given.resize(shares[i]);
  const uint32_t most = *std::ranges::max_element(shares);
  // Drafts were right lately. So the host looks at each token whether there are some again.
  steps = {.rows = 1 + most};
  return most != 0;
}

// While drafts are in flight, nobody knows where the sequences stand, and windows of both places are held.
bool Scheduler::awaits_drafts() const {
  return runner_.max_sequences() > 1 && !in_flight_.empty() && in_flight_.back().ticket.rows > 1;
}

// Counts the drafts of a ticket, and what they cost.
void Scheduler::note_together(const InFlight& in_flight, std::span<const uint32_t> tokens) {
  std::vector<uint32_t> drafts;
  for (const InFlight::Member& member : in_flight.members) drafts.push_back(member.drafts);
  const std::vector<double> losses = losses_of(drafts, together_costs_);
  for (size_t i = 0; i < in_flight.members.size(); ++i) {
    Sequence& sequence = *in_flight.members[i].sequence;
    const std::vector<uint32_t> entries = entries_of(tokens, sequence.slot, runner_.max_sequences());
    const uint32_t rows = 1 + drafts[i];
    const std::span<const uint32_t> own =
        in_flight.ticket.rows == 1 ? std::span(entries) : std::span(entries).first(rows);
    sequence.drafts.settle(outcome_of(rows, own), losses[i]);
    if (rows > 1) sequence.stream->timings_.drafts.add(own, rows);
  }
}

}  // namespace doppler::engine
