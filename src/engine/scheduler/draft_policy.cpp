#include "engine/scheduler/draft_policy.h"

#include "base/text.h"

namespace doppler::engine {
namespace {

// Steps of a trial: some tickets, so that one that waited for something else does not decide.
constexpr uint32_t kDrafting = 64, kPlain = 32;
// Then both are tried again: code is easier to guess than what is said about it.
constexpr uint32_t kPeriod = 1024;

}  // namespace

bool DraftPolicy::choose(uint32_t steps) {
  if (use_ != DraftUse::kWhereFaster) return use_ == DraftUse::kAlways;
  if (queued_ >= kPeriod) {
    queued_ = 0;
    rates_[0] = rates_[1] = {};
  }
  const uint32_t before = queued_;
  queued_ += steps;
  if (before < kDrafting) return true;
  if (before < kDrafting + kPlain) return false;
  return is_faster();
}

void DraftPolicy::note(bool drafts, uint32_t tokens, double seconds) {
  Rate& rate = rates_[drafts ? 1 : 0];
  rate.tokens += tokens;
  rate.seconds += seconds;
}

std::string drafts_line(uint64_t drafted, uint64_t accepted) {
  return format_text("%llu tokens drafted, %llu of them right (%.0f %%)",
                     static_cast<unsigned long long>(drafted), static_cast<unsigned long long>(accepted),
                     100.0 * static_cast<double>(accepted) / static_cast<double>(drafted));
}

}  // namespace doppler::engine
