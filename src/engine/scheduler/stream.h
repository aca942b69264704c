// A caller gives the scheduler a request and gets a stream, to which tokens come while the scheduler's turns run.
// Tokens only: text, stop strings and templates are their caller's matter.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "doppler/doppler.h"
#include "engine/scheduler/draft_policy.h"
#include "engine/scheduler/guide.h"
#include "model/generation.h"

namespace doppler::model {
struct HeldImage;  // model/held_image.h
}

namespace doppler::engine {

using Clock = std::chrono::steady_clock;

inline constexpr int32_t kMaxPriority = 7;

struct Request {
  std::vector<uint32_t> tokens;  // the prompt
  // max_tokens 0: until the model stops or the context is full; it counts what comes after the prompt. `generated`:
  // tokens at the prompt's end that belong to the answer, of one whose device was lost.
  model::GenerationSettings settings;
  uint64_t client = 0;                                 // who asks: clients of one priority get equal shares
  int32_t priority = 0;                                // 0 to kMaxPriority; higher ones begin earlier
  std::optional<Clock::time_point> deadline;           // to begin by; later it ends with an error
  std::optional<Clock::time_point> submitted_at = {};  // if it has waited elsewhere
  std::shared_ptr<Guide> guide;  // of requests whose settings ask for masks; null otherwise
  DraftPolicy drafts;            // of settings.drafter
  // For a runner with one slot: decode steps of a submit, 0: as the scheduler has it; submits whose tokens come
  // together.
  uint32_t batch = 0, submits = 1;
  bool first_adapters = true;  // of the runner; false: those of settings, or none
  // Set by the scheduler: the key of settings.adapters, on which keys and values depend from settings.adapters_from on.
  std::vector<uint32_t> adapter_key = {};
  // Pictures whose tokens the prompt has, so that they can be evaluated while it runs.
  std::vector<std::shared_ptr<const model::HeldImage>> images;
  std::vector<uint32_t> extras;  // what else keys and values depend on; prefixes are shared among equal ones
};

struct StreamTimings {
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;     // of the prompt, found in blocks: not evaluated
  uint32_t evaluated_tokens = 0;  // of the prompt, so far
  uint32_t generated_tokens = 0;
  uint32_t forced_tokens = 0;  // of the generated ones, appended without a step each
  model::DraftTally drafts;
  uint32_t preemptions = 0;   // how often its slot or blocks went to another, and it was evaluated again
  double queued_seconds = 0;  // from submit to the slot
};

// One generation, held by the caller and by the scheduler. It belongs to the scheduler's thread.
class Stream {
 public:
  Stream(uint64_t id, std::vector<uint32_t> prompt) : id_(id), sequence_(std::move(prompt)) {
    timings_.prompt_tokens = static_cast<uint32_t>(sequence_.size());
  }

  uint64_t id() const { return id_; }
  // The tokens that came since the last take().
  std::vector<uint32_t> take() {
    std::vector<uint32_t> out(sequence_.begin() + static_cast<ptrdiff_t>(timings_.prompt_tokens + taken_),
                              sequence_.end());
    taken_ += static_cast<uint32_t>(out.size());
    return out;
  }
  // The log-probabilities of the same tokens, if the request asks for them: before take() or after it.
  std::vector<kernels::LogProbEntry> take_logprobs() { return std::exchange(logprobs_, {}); }
  const std::vector<uint32_t>& sequence() const { return sequence_; }  // prompt and all tokens so far
  const StreamTimings& timings() const { return timings_; }
  bool ended() const { return reason_ || error_; }
  // Why it ended: one of the two, once ended().
  const std::optional<StopReason>& reason() const { return reason_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  friend class Scheduler;
  // The prompt is there up to this position.
  void note_fed(uint32_t positions) {
    if (positions <= timings_.cached_tokens) return;
    timings_.evaluated_tokens = std::max(timings_.evaluated_tokens, positions - timings_.cached_tokens);
  }

  uint64_t id_;
  std::vector<uint32_t> sequence_;
  uint32_t taken_ = 0;
  std::vector<kernels::LogProbEntry> logprobs_;  // since the last take_logprobs()
  StreamTimings timings_;
  std::optional<StopReason> reason_;
  std::optional<Error> error_;
};

}  // namespace doppler::engine
