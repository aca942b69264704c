// When to try again: which failures may pass, how long to wait, when to give up.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "store/http_client.h"

namespace doppler::store {

// The sentence for a status that is no success (4xx, 5xx, and unexpected ones), and whether it may pass.
Failure failure_of_status(const ResponseHead& head, const std::string& url, bool had_token);

class Retries {
 public:
  explicit Retries(uint32_t most) : most_(most) {}

  // Milliseconds to wait before the next try, or the error to give up with: it does not pass, came too often, or
  // the server asks for more patience than kMostWaitSeconds.
  Result<uint64_t> next(const Failure& failure);
  // Enough progress forgives earlier failures: a bad line that still delivers is no reason to give up.
  void note_progress(uint64_t bytes);

  static constexpr uint64_t kMostWaitSeconds = 120;

 private:
  static constexpr uint64_t kForgivingBytes = 64 << 10;
  static constexpr uint64_t kFirstWaitMs = 500, kLongestWaitMs = 30'000;  // doubled from failure to failure
  uint32_t most_;
  uint32_t failed_ = 0;
  uint64_t progress_ = 0;
};

// Sleeps in short steps. Error (kCancelled) as soon as `stop` is set.
Result<void> pause(uint64_t milliseconds, const std::atomic<bool>* stop);
Result<void> check_not_stopped(const std::atomic<bool>* stop);

}  // namespace doppler::store
