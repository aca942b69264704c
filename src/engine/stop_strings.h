// Finds stop strings in text that arrives in pieces, and holds back text that may yet become one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace doppler::engine {

class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Gives the text that is safe to show now. Sets found() when a stop string is complete; that string and all text
  // after it are dropped.
  std::string push(std::string_view text);
  // The text has ended: gives what was held back.
  std::string flush();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace doppler::engine
