// Chooses the rows of the next decode steps of a request: 1, or a token and drafts (model/drafter.h). A step with drafts
// takes longer, and what it gives depends on the text. The text is the same either way.
//
// Two things decide. The share of right drafts, an average that forgets, says how many tokens a step of n rows gives;
// StepCosts says what it takes. An account in plain steps bounds the loss. Each token adds a hundredth of a step, each
// right draft a step. Steps with drafts take off their cost beyond plain ones before they are queued. So a drafter that
// is always wrong costs a hundredth of the time and what the account begins with.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "engine/scheduler/step_costs.h"

namespace doppler::engine {

enum class DraftUse : uint8_t {
  kNever,
  kWhereFaster,
  kAlways,  // with a fixed number of rows
};

struct DraftSteps {
  uint32_t rows = 1, steps = 1;
};

// The result of a ticket.
struct DraftOutcome {
  uint32_t rows = 1, steps = 1;
  uint32_t tokens = 0;
  uint32_t accepted = 0, failed = 0;  // right drafts; steps in which a draft was wrong, or there was none
};

// The outcome of a ticket with these entries, whose steps have `rows`.
DraftOutcome outcome_of(uint32_t rows, std::span<const uint32_t> entries);

class DraftPolicy {
 public:
  static constexpr double kFirstAcceptance = 0.5, kFirstAccount = 0.5;
  // most_rows: of a step, 0: as many as there may be.
  DraftPolicy() = default;
  explicit DraftPolicy(DraftUse use, uint32_t most_rows = 0) : use_(use), most_rows_(most_rows) {}
  DraftUse use() const { return use_; }

  // Whether steps with drafts would be queued now. `finds`: the drafter has something to say.
  bool wants(bool finds) const;
  // The same as choose(), of a ticket that is not queued.
  DraftSteps next(std::span<const uint32_t> rows, const StepCosts& costs, uint32_t steps, bool finds) const;
  // The steps of the next ticket, which is queued, instead of so many plain ones. `rows`: the numbers that have plans.
  DraftSteps choose(std::span<const uint32_t> rows, const StepCosts& costs, uint32_t steps, bool finds);
  // Tickets come back in the order in which they were queued.
  void note(const DraftOutcome& outcome, const StepCosts& costs);
  double acceptance() const { return acceptance_; }

 private:
  DraftSteps best(std::span<const uint32_t> rows, const StepCosts& costs, uint32_t steps) const;
  double tokens_of(uint32_t rows) const;  // that a step gives on average

  DraftUse use_ = DraftUse::kNever;
  uint32_t most_rows_ = 0;
  double acceptance_ = kFirstAcceptance, account_ = kFirstAccount;
  std::deque<double> queued_;  // what the tickets with drafts in flight were taken to cost
};

// "640 tokens drafted, 512 of them right (80 %)". drafted: above 0.
std::string drafts_line(uint64_t drafted, uint64_t accepted);

}  // namespace doppler::engine
