// line_editor.h by libedit.
#include <editline/readline.h>

#include <cstdlib>
#include <utility>

#include "base/line_editor.h"

namespace doppler {

LineEditor::LineEditor(std::string history) : history_(std::move(history)) {
  ::using_history();
  if (!history_.empty()) ::read_history(history_.c_str());
}

LineEditor::~LineEditor() {
  if (!history_.empty()) ::write_history(history_.c_str());
}

std::optional<std::string> LineEditor::read(const char* prompt) {
  char* line = ::readline(prompt);
  if (!line) return std::nullopt;
  std::string text(line);
  std::free(line);
  if (text.find_first_not_of(" \t") != std::string::npos) ::add_history(text.c_str());
  return text;
}

}  // namespace doppler
