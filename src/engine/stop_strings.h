// Finds stop strings in text that arrives in pieces, and holds back text that may yet become one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace doppler::engine {

class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Text that is safe to show now. Sets found() when a stop string is complete: it and all after it are dropped.
  std::string push(std::string_view text);
  // The end: whatever was held back.
  std::string flush();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace doppler::engine
