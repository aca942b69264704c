// line_editor.h by the console: it edits lines and keeps a history itself, for as long as its window is open. A file or
// a pipe has no editing.
#include <cstdio>
#include <utility>

#include "base/line_editor.h"
#include "base/system_windows.h"

namespace doppler {
namespace {

// A line of a file or a pipe, which ReadConsoleW() does not read.
std::optional<std::string> read_plain() {
  std::string line;
  int byte = 0;
  while ((byte = std::getchar()) != EOF && byte != '\n') line.push_back(static_cast<char>(byte));
  if (byte == EOF && line.empty()) return {};
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace

LineEditor::LineEditor(std::string history) : history_(std::move(history)) {}
LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::read(const char* prompt) {
  std::fputs(prompt, stdout);
  std::fflush(stdout);
  HANDLE console = ::GetStdHandle(STD_INPUT_HANDLE);
  DWORD mode = 0;
  if (!::GetConsoleMode(console, &mode)) return read_plain();
  constexpr wchar_t kCtrlZ = 26;
  std::wstring line;
  while (line.empty() || line.back() != L'\n') {
    wchar_t piece[1024];
    DWORD count = 0;
    if (!::ReadConsoleW(console, piece, static_cast<DWORD>(std::size(piece)), &count, nullptr)) return {};
    if (count == 0) return {};  // Ctrl-C
    line.append(piece, count);
  }
  while (!line.empty() && (line.back() == L'\n' || line.back() == L'\r')) line.pop_back();
  if (!line.empty() && line.front() == kCtrlZ) return {};
  return narrow(line);
}

}  // namespace doppler
