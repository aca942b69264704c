#include "store/retry.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

#include "base/text.h"
#include "store/url.h"

namespace doppler::store {

Failure failure_of_status(const ResponseHead& head, const std::string& url, bool had_token) {
  const std::string address = shown_url(url);
  const int status = head.status;
  Failure failure{.error = Error(ErrorKind::kIo, "")};
  const auto say = [&](ErrorKind kind, std::string sentence) {
    failure.error = Error(kind, std::move(sentence));
  };
  const char* token =
      had_token ? "the token in HF_TOKEN does not allow it" : "an access token in HF_TOKEN may be needed";
  if (status == 401) {
    say(ErrorKind::kIo,
        format_text("%s needs a login or does not exist (HTTP 401); %s.", address.c_str(), token));
  } else if (status == 403) {
    say(ErrorKind::kIo,
        format_text("%s may not be read (HTTP 403); %s, and some models ask for their terms to be "
                    "accepted on their page first.",
                    address.c_str(), token));
  } else if (status == 404 || status == 410) {
    say(ErrorKind::kIo, format_text("There is nothing at %s (HTTP %d).", address.c_str(), status));
  } else if (status == 416) {
    say(ErrorKind::kIo,
        format_text("%s does not have the bytes that were asked for (HTTP 416); it has changed.",
                    address.c_str()));
  } else if (status == 408 || status == 429 || status >= 500) {
    failure.may_pass = status != 501 && status != 505;
    if (const std::string* after = head.find("retry-after")) {
      failure.wait_seconds = parse_retry_after(*after, static_cast<int64_t>(std::time(nullptr)));
    }
    const char* meaning = status == 429   ? "is asked too often"
                          : status == 408 ? "waited too long for the request"
                                          : "has a problem of its own";
    say(ErrorKind::kIo, format_text("The server of %s %s (HTTP %d).", address.c_str(), meaning, status));
  } else {
    say(ErrorKind::kIo, format_text("%s answers HTTP %d, which is no file.", address.c_str(), status));
  }
  return failure;
}

Result<uint64_t> Retries::next(const Failure& failure) {
  if (!failure.may_pass) return forward(failure.error);
  const uint64_t asked = failure.wait_seconds.value_or(0);
  if (asked > kMostWaitSeconds) {
    return fail(ErrorKind::kIo,
                "%s It asks to wait %llu s; the arrived bytes are kept, run the same command then.",
                failure.error.sentence().c_str(), static_cast<unsigned long long>(asked));
  }
  if (failed_ == most_) {
    if (most_ == 0) return forward(failure.error);
    return fail(ErrorKind::kIo, "%s Given up after %u tries; the arrived bytes are kept.",
                failure.error.sentence().c_str(), most_ + 1);
  }
  const uint64_t doubled = kFirstWaitMs << std::min(failed_, 16u);
  ++failed_;
  progress_ = 0;
  return std::max(std::min(doubled, kLongestWaitMs), asked * 1000);
}

void Retries::note_progress(uint64_t bytes) {
  progress_ += bytes;
  if (progress_ >= kForgivingBytes) failed_ = 0;
}

Result<void> check_not_stopped(const std::atomic<bool>* stop) {
  if (!stop || !stop->load()) return {};
  return fail(ErrorKind::kCancelled,
              "Stopped. The arrived bytes are kept; the same command goes on from there.");
}

Result<void> pause(uint64_t milliseconds, const std::atomic<bool>* stop) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < end) {
    DP_CHECK(check_not_stopped(stop));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return check_not_stopped(stop);
}

}  // namespace doppler::store
