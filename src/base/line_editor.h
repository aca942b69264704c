// Lines that a person types at a terminal, with editing and a history.
#pragma once

#include <optional>
#include <string>

namespace doppler {

class LineEditor {
 public:
  // `history`: a file that keeps the lines for the next time; empty: none.
  explicit LineEditor(std::string history);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Without its line feed. Empty: the person has ended the input.
  std::optional<std::string> read(const char* prompt);

 private:
  std::string history_;
};

}  // namespace doppler
