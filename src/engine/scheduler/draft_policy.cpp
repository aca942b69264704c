#include "engine/scheduler/draft_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "engine/scheduler/draft_shares.h"
#include "kernels/step/draft_text.h"

namespace doppler::engine {
namespace {

constexpr double kForgets = 1.0 / 16;    // the share of the average that each draft replaces
constexpr double kAllowance = 0.01;      // plain steps that each token may lose
constexpr double kWorthPlans = 1;        // plain steps that the account must hold before plans are made
constexpr double kForeseenWorth = 0.05;  // plain steps that a right guess of the host adds to the account
constexpr double kForeseenPlans = 0.6;   // the average that pays for plans: 15 right guesses in a row
// In plain steps. Without this limit, drafts that were right long ago would pay for drafts that are wrong now.
constexpr double kMostSaved = 32;
constexpr uint32_t kMostTried = 4;  // steps of a ticket that tries whether drafts are right again
// Steps of a plain ticket while drafts are in flight. Their results decide about the next drafts, so they come soon.
constexpr uint32_t kStepsBesideDrafts = 4;
constexpr uint32_t kStepsOfPlain = 2;  // a ticket with n rows has the steps of a plain one times this over n

}  // namespace

DraftOutcome outcome_of(uint32_t rows, std::span<const uint32_t> entries) {
  DraftOutcome out{.rows = rows, .steps = static_cast<uint32_t>(entries.size()) / rows};
  for (uint32_t step = 0; step < out.steps; ++step) {
    const std::span<const uint32_t> of = entries.subspan(size_t{step} * rows, rows);
    const auto tokens = static_cast<uint32_t>(std::ranges::count_if(
        of, [](uint32_t entry) { return !kernels::is_left_out(entry) && entry != kernels::kNoToken; }));
    out.tokens += tokens;
    if (tokens == 0) continue;
    out.accepted += tokens - 1;
    out.failed += kernels::is_left_out(of.back()) ? 1 : 0;
  }
  return out;
}

double DraftPolicy::tokens_of(uint32_t rows) const {
  return (1 - std::pow(acceptance_, rows)) / (1 - acceptance_);
}

void DraftPolicy::learn(uint32_t right, uint32_t wrong) {
  if (right + wrong == 0) return;
  const double kept = std::pow(1 - kForgets, right + wrong);
  acceptance_ = std::min(kept * acceptance_ + (1 - kept) * right / (right + wrong), 0.99);
}

void DraftPolicy::foresee(uint32_t right, uint32_t wrong) {
  if (!std::exchange(foresees_, true)) acceptance_ = 0;
  account_ = std::min(account_ + kForeseenWorth * right, kMostSaved);
  learn(right, wrong);
}

bool DraftPolicy::wants(bool finds) const {
  if (foresees_ && use_ == DraftUse::kWhereFaster && acceptance_ < kForeseenPlans) return false;
  return use_ == DraftUse::kAlways || (use_ == DraftUse::kWhereFaster && finds && account_ >= kWorthPlans);
}

// Chooses the rows that give the most tokens a second, among those whose loss the account bears. 1 row: no other number
// is faster.
DraftSteps DraftPolicy::best(std::span<const uint32_t> rows, const StepCosts& costs, uint32_t steps) const {
  DraftSteps best{.rows = 1, .steps = steps};
  double best_gain = kLeastGain;
  for (const uint32_t n : rows) {
    const double gain = tokens_of(n) / costs.of(n), loss = costs.most(n) - 1;
    const auto most = std::max(1u, steps * kStepsOfPlain / n);
    const auto paid = loss > 0 ? static_cast<uint32_t>(std::min<double>(account_ / loss, most)) : most;
    if (gain <= best_gain || paid == 0) continue;
    best_gain = gain;
    best = {.rows = n, .steps = paid};
  }
  return best;
}

DraftSteps DraftPolicy::next(std::span<const uint32_t> rows, const StepCosts& costs, uint32_t steps,
                             bool finds) const {
  DraftSteps out{.rows = 1, .steps = steps};
  if (use_ == DraftUse::kNever || rows.empty()) return out;
  if (use_ == DraftUse::kAlways) {
    for (const uint32_t n : rows) out.rows = most_rows_ == 0 || n <= most_rows_ ? n : out.rows;
  } else if (finds || acceptance_ > kFirstAcceptance) {
    out = best(rows, costs, steps);
    const double loss = costs.most(rows.front()) - 1;
    if (out.rows == 1 && !foresees_ && finds && account_ >= loss) {  // it may be right again
      const double paid = loss > 0 ? account_ / loss : kMostTried;
      out = {.rows = rows.front(), .steps = static_cast<uint32_t>(std::min<double>(paid, kMostTried))};
      out.steps = std::min(out.steps, steps);
    }
  }
  return out;
}

DraftSteps DraftPolicy::choose(std::span<const uint32_t> rows, const StepCosts& costs, uint32_t steps,
                               bool finds) {
  DraftSteps out = next(rows, costs, steps, finds);
  if (out.rows == 1) {
    if (!queued_.empty()) out.steps = std::min(out.steps, kStepsBesideDrafts);
    return out;
  }
  queued_.push_back(out.steps * (costs.most(out.rows) - 1));
  account_ -= queued_.back();
  return out;
}

void DraftPolicy::note(const DraftOutcome& outcome, const StepCosts& costs) {
  account_ += kAllowance * outcome.tokens;
  if (outcome.rows > 1 && !queued_.empty()) {
    account_ += queued_.front() - outcome.steps * (costs.most(outcome.rows) - 1) + outcome.accepted;
    queued_.pop_front();
    learn(outcome.accepted, outcome.failed);
  }
  account_ = std::min(account_, kMostSaved);
}

void DraftPolicy::settle(const DraftOutcome& outcome, double loss) {
  account_ = std::min(account_ + kAllowance * outcome.tokens + outcome.accepted - loss, kMostSaved);
  if (outcome.rows > 1) learn(outcome.accepted, outcome.failed);
}

std::string drafts_line(uint64_t drafted, uint64_t accepted) {
  return format_text("%llu tokens drafted, %llu of them right (%.0f %%)",
                     static_cast<unsigned long long>(drafted), static_cast<unsigned long long>(accepted),
                     100.0 * static_cast<double>(accepted) / static_cast<double>(drafted));
}

}  // namespace doppler::engine
