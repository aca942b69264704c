// Steps in which several sequences draft. The host gives the drafts. So all tickets must have come back before such a
// step, and the host knows each text. Read next: draft_shares.h (who gets how many), drafting.cpp (one sequence).
#include <algorithm>
#include <utility>

#include "engine/scheduler/draft_shares.h"
#include "engine/scheduler/scheduler.h"

namespace doppler::engine {
namespace {

// If drafts of a sequence are right so often, the host looks at each of its tokens whether there are some.
constexpr double kLooksOften = 0.5;

// The host searches the sequence's text.
bool drafts_together(const Sequence& sequence) {
  const model::Drafter drafter = draft_need_of(sequence.request.settings).drafter;
  const bool searches =
      drafter == model::Drafter::kLookup || (sequence.guided() && drafter != model::Drafter::kNone);
  return searches && sequence.drafts.use() != DraftUse::kNever;
}

// Entries of the slot in a ticket.
std::vector<uint32_t> entries_of(std::span<const uint32_t> tokens, uint32_t slot, uint32_t sequences) {
  std::vector<uint32_t> out;
  for (size_t at = slot; at < tokens.size(); at += sequences) out.push_back(tokens[at]);
  return out;
}

}  // namespace

// Puts the sequence's next drafts into `given`. Returns whether plans for them are worth making.
bool Scheduler::propose_together(Sequence& sequence) {
  sequence.given.clear();
  if (!drafts_together(sequence)) return false;
  const bool finds = finds_drafts(sequence);
  // The answer's last token is chosen by the row after the last draft.
  const uint32_t left = sequence.limit - std::min(sequence.asked, sequence.limit);
  const uint32_t most = std::min(sequence.drafts.most_rows(), left);
  if (finds && most > 1) sequence.given = sequence.index.drafts(most - 1);
  return sequence.drafts.wants(finds);
}

// Says whether the next step drafts, and then sets its rows. A choice while tickets are in flight is a guess.
Result<bool> Scheduler::choose_together(const std::vector<Sequence*>& decoding, model::DecodeSteps& steps) {
  const bool in_prefill =
      std::ranges::any_of(running_, [](const Sequence* s) { return s->phase == Phase::kPrefill; });
  const auto drafts = [](const Sequence* s) { return drafts_together(*s); };
  if (in_prefill || std::ranges::none_of(decoding, drafts)) return false;
  const auto slots = static_cast<uint32_t>(decoding.size());
  std::vector<DraftOffer> offers, hopes;
  model::DraftNeed need = draft_need_of(decoding[0]->request.settings);
  bool wants_plans = false;
  for (Sequence* const s : decoding) {
    need = together(need, draft_need_of(s->request.settings));
    wants_plans = propose_together(*s) || wants_plans;
    const bool always = s->drafts.use() == DraftUse::kAlways;
    const DraftOffer offer{.drafts = static_cast<uint32_t>(s->given.size()),
                           .acceptance = s->drafts.acceptance(),
                           .account = s->drafts.account(),
                           .always = always};
    offers.push_back(offer);
    hopes.push_back(offer);
    if (drafts(s) && (always || offer.acceptance >= kLooksOften))
      hopes.back().drafts = kernels::kMostDraftRows - 1;
  }
  if (wants_plans && runner_.may_prepare_drafts(need, slots)) prepare_next_plan(need, slots);
  const std::span<const uint32_t> kinds = runner_.draft_rows(need);
  const std::vector<uint32_t> shares = share_drafts(offers, kinds, together_costs_);
  size_t most = 0;
  for (size_t i = 0; i < decoding.size(); ++i) {
    std::vector<uint32_t>& given = decoding[i]->given;
    given.resize(shares[i]);
    if (shares[i] > 0 && decoding[i]->guided()) {
      DP_TRY(given, allowed_drafts(*decoding[i], given));
    }
    most = std::max(most, given.size());
  }
  // Long tickets would pass by the places at which a text begins to repeat itself.
  const std::vector<uint32_t> hoped = share_drafts(hopes, kinds, together_costs_);
  if (most == 0 && *std::ranges::max_element(hoped) != 0) steps = {};
  if (most != 0) steps = {.rows = static_cast<uint32_t>(1 + most)};
  return most != 0;
}

// While drafts are in flight, nobody knows where the sequences stand, and windows of both places are held.
bool Scheduler::awaits_drafts() const {
  return runner_.max_sequences() > 1 && !in_flight_.empty() && in_flight_.back().ticket.rows > 1;
}

// Counts the drafts of a ticket, and what they cost.
void Scheduler::note_together(const InFlight& in_flight, std::span<const uint32_t> tokens) {
  std::vector<uint32_t> drafts;
  for (const InFlight::Member& member : in_flight.members)
    drafts.push_back(std::min(member.drafts, in_flight.ticket.rows - 1));
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
