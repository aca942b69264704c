// Decides whether the next decode steps draft (model/plan_runner_draft.cpp): a step that drafts takes longer, and its
// gain depends on the text. Both ways are timed in turn, and the faster one goes on. The text is the same either way.
#pragma once

#include <cstdint>
#include <string>

namespace doppler::engine {

enum class DraftUse : uint8_t {
  kNever,
  kWhereFaster,
  kAlways,
};

class DraftPolicy {
 public:
  explicit DraftPolicy(DraftUse use = DraftUse::kNever) : use_(use) {}

  // The choice for the next ticket of so many steps, which is queued: each call counts them.
  bool choose(uint32_t steps);
  // A ticket came back, so long after the one before it.
  void note(bool drafts, uint32_t tokens, double seconds);

 private:
  struct Rate {
    uint32_t tokens = 0;
    double seconds = 0;
    double value() const { return seconds > 0 ? tokens / seconds : 0; }
  };
  bool is_faster() const { return rates_[1].value() > rates_[0].value(); }

  DraftUse use_;
  Rate rates_[2];        // without and with drafts
  uint32_t queued_ = 0;  // steps since both were tried last
};

// "640 tokens drafted, 512 of them right (80 %)". drafted: above 0.
std::string drafts_line(uint64_t drafted, uint64_t accepted);

}  // namespace doppler::engine
