#include "cli/transfer_line.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "cli/common.h"

namespace doppler::cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kRateWindow = std::chrono::seconds(5);
constexpr size_t kBarCells = 24;

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<unsigned long long>(seconds + 0.5);
  if (whole >= 3600) return format_text("%llu:%02llu:%02llu", whole / 3600, whole / 60 % 60, whole % 60);
  return format_text("%llu:%02llu", whole / 60, whole % 60);
}

std::string transfer_text(std::string_view what, uint64_t done, uint64_t total, double rate) {
  std::string out(what);
  if (total != 0) {
    const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const auto cells = static_cast<size_t>(part * kBarCells);
    out += " [" + std::string(cells, '#') + std::string(kBarCells - cells, '-') + "] " +
           format_text("%u%%, ", static_cast<unsigned>(part * 100)) + format_bytes(done) + " of " +
           format_bytes(total);
  } else {
    out += " " + format_bytes(done);
  }
  if (rate > 0) {
    out += ", " + format_bytes(static_cast<uint64_t>(rate)) + "/s";
    if (total > done) out += ", " + duration_text(static_cast<double>(total - done) / rate) + " left";
  }
  return out;
}

TransferLine::TransferLine() : is_terminal_(stderr_is_terminal()) {}

void TransferLine::show(std::string_view what, uint64_t done, uint64_t total) {
  if (!is_terminal_) return;
  const auto now = Clock::now();
  if (is_shown_ && now - last_ < kRedraw) return;
  last_ = now;
  samples_.push_back({now, done});
  while (samples_.size() > 2 && now - samples_.front().when > kRateWindow) samples_.pop_front();
  const double seconds = std::chrono::duration<double>(now - samples_.front().when).count();
  const double rate = seconds > 0.5 && done > samples_.front().done
                          ? static_cast<double>(done - samples_.front().done) / seconds
                          : 0;
  std::fprintf(stderr, "\r\033[K%s", transfer_text(what, done, total, rate).c_str());
  is_shown_ = true;
}

void TransferLine::clear() {
  if (is_shown_) std::fprintf(stderr, "\r\033[K");
  is_shown_ = false;
}

}  // namespace doppler::cli
