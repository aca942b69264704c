#include "engine/stop_strings.h"

#include <algorithm>
#include <utility>

namespace doppler::engine {

std::string StopStrings::push(std::string_view text) {
  if (found_) return {};
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    first = std::min(first, held_.find(stop));
  }
  if (first != std::string::npos) {
    found_ = true;
    held_.resize(first);
    return flush();
  }
  // Keep the longest end that begins a stop string.
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size(), held_.size()); length > keep; --length) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, length))) {
        keep = length;
        break;
      }
    }
  }
  std::string safe = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return safe;
}

std::string StopStrings::flush() { return std::exchange(held_, {}); }

}  // namespace doppler::engine
