// Chooses the rows of the next decode steps of a request: 1, or a token and drafts (model/drafter.h). A step with
// drafts takes longer, and the text decides how many tokens it gives. The text is the same either way.
//
// The policy compares two things. The share of right drafts, a moving average, says how many tokens a step of n rows
// gives. StepCosts says how long such a step takes. An account in plain steps bounds the loss: each token adds a
// hundredth of a step, and each right draft adds a step. Steps with drafts take off their cost beyond plain ones before
// they are queued. So a drafter that is always wrong costs a hundredth of the time and what the account begins with.
// If the host can tell what a drafter would have guessed (foresee), the policy tries nothing: plain steps show whether
// drafts pay.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "engine/scheduler/step_costs.h"
#include "kernels/step/draft_text.h"

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
  uint32_t accepted = 0, failed = 0;  // right drafts; steps with a wrong or a missing draft
};

// The outcome of a ticket with these entries, whose steps have `rows`.
DraftOutcome outcome_of(uint32_t rows, std::span<const uint32_t> entries);

class DraftPolicy {
 public:
  static constexpr double kFirstAcceptance = 0.5, kFirstAccount = 0.5;
  // most_rows: the most rows of a step. 0: as many as there may be.
  DraftPolicy() = default;
  explicit DraftPolicy(DraftUse use, uint32_t most_rows = 0) : use_(use), most_rows_(most_rows) {}
  DraftUse use() const { return use_; }

  // Takes guesses that no step evaluated, of a drafter that the host can follow. Call it before each choice.
  void foresee(uint32_t right, uint32_t wrong);
  // Says whether steps with drafts would be queued now and are worth their plans. `finds`: the drafter has guesses.
  bool wants(bool finds) const;
  // Works like choose(), but for a ticket that is not queued.
  DraftSteps next(std::span<const uint32_t> rows, const StepCosts& costs, uint32_t steps, bool finds) const;
  // Chooses the steps of the next ticket, which replace `steps` plain ones and are queued. `rows`: the numbers that
  // have plans. Plain ones may be fewer.
  DraftSteps choose(std::span<const uint32_t> rows, const StepCosts& costs, uint32_t steps, bool finds);
  // The caller notes tickets in the order in which they were queued.
  void note(const DraftOutcome& outcome, const StepCosts& costs);
  // Takes off what a ticket cost beyond the costs of its steps, in plain steps.
  void charge(double steps) { account_ -= steps; }
  // Notes a ticket of steps that several sequences take together. loss: the tokens that its drafts cost everybody.
  void settle(const DraftOutcome& outcome, double loss);
  double acceptance() const { return acceptance_; }
  double account() const { return account_; }
  uint32_t most_rows() const { return most_rows_ == 0 ? kernels::kMostDraftRows : most_rows_; }

 private:
  void learn(uint32_t right, uint32_t wrong);
  DraftSteps best(std::span<const uint32_t> rows, const StepCosts& costs, uint32_t steps) const;
  double tokens_of(uint32_t rows) const;  // the tokens that a step gives on average

  DraftUse use_ = DraftUse::kNever;
  uint32_t most_rows_ = 0;
  bool foresees_ = false;
  double acceptance_ = kFirstAcceptance, account_ = kFirstAccount;
  std::deque<double> queued_;  // the expected costs of tickets with drafts in flight
};

// "640 tokens drafted, 512 of them right (80 %)". drafted: above 0.
std::string drafts_line(uint64_t drafted, uint64_t accepted);

}  // namespace doppler::engine
