// The progress of a transfer on a terminal: bar, bytes, rate, time left, in one line that is rewritten. Nothing
// where standard error is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace doppler::cli {

class TransferLine {
 public:
  TransferLine();
  ~TransferLine() { clear(); }
  TransferLine(const TransferLine&) = delete;
  TransferLine& operator=(const TransferLine&) = delete;

  // total 0: not known.
  void show(std::string_view what, uint64_t done, uint64_t total);
  void clear();  // before another line is printed

 private:
  using Clock = std::chrono::steady_clock;
  struct Sample {
    Clock::time_point when;
    uint64_t done;
  };
  bool is_terminal_;
  bool is_shown_ = false;
  Clock::time_point last_;
  std::deque<Sample> samples_;  // of the last seconds, for the rate
};

// The text of such a line, `rate` in bytes a second; 0: not known yet.
std::string transfer_text(std::string_view what, uint64_t done, uint64_t total, double rate);

// "1:05", "2:00:00": for a person who waits.
std::string duration_text(double seconds);

}  // namespace doppler::cli
