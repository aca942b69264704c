#include "base/child_process.h"

#include <utility>

namespace doppler {

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(std::exchange(other.process_, kNone)),
      output_(std::exchange(other.output_, kNone)),
      rest_(std::move(other.rest_)) {}

std::optional<std::string> ChildProcess::line() {
  size_t end = rest_.find('\n');
  for (; end == std::string::npos; end = rest_.find('\n')) {
    char piece[4096];
    const size_t count = output_ == kNone ? 0 : read(piece);
    if (count == 0) break;
    rest_.append(piece, count);
  }
  if (end != std::string::npos) {
    std::string out = rest_.substr(0, end);
    rest_.erase(0, end + 1);
    return out;
  }
  if (output_ != kNone) close_output();
  if (rest_.empty()) return {};
  return std::exchange(rest_, {});
}

}  // namespace doppler
