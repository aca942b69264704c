// child_process.h by pipes and CreateProcess().
#include "base/child_process.h"
#include "base/system_windows.h"
// After windows.h, which it needs.
#include <shellapi.h>

#include <algorithm>
#include <utility>

namespace doppler {
namespace {

HANDLE handle_of(intptr_t handle) {
  return reinterpret_cast<HANDLE>(handle);  // NOLINT(performance-no-int-to-ptr)
}

// A program gets one text, and takes it apart by rules of its own: backslashes count only before a quotation mark.
std::wstring quoted(const std::string& word) {
  std::wstring out = L"\"";
  size_t backslashes = 0;
  for (const wchar_t unit : wide(word)) {
    if (unit == L'"') out.append(backslashes + 1, L'\\');
    backslashes = unit == L'\\' ? backslashes + 1 : 0;
    out += unit;
  }
  return out.append(backslashes, L'\\') + L"\"";
}

}  // namespace

std::optional<ChildProcess> ChildProcess::start(const std::vector<std::string>& words) {
  SECURITY_ATTRIBUTES inherited{};
  inherited.nLength = sizeof inherited;
  inherited.bInheritHandle = TRUE;
  HANDLE reading = nullptr, writing = nullptr;
  if (!::CreatePipe(&reading, &writing, &inherited, 0)) {
    set_errno();
    return {};
  }
  ::SetHandleInformation(reading, HANDLE_FLAG_INHERIT, 0);
  STARTUPINFOW start{};
  start.cb = sizeof start;
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = ::GetStdHandle(STD_INPUT_HANDLE);
  start.hStdOutput = writing;
  start.hStdError = ::GetStdHandle(STD_ERROR_HANDLE);
  std::wstring line;
  for (const std::string& word : words) line += (line.empty() ? L"" : L" ") + quoted(word);
  PROCESS_INFORMATION process{};
  const bool is_started =
      ::CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &start, &process);
  const DWORD reason = ::GetLastError();
  ::CloseHandle(writing);
  if (!is_started) {
    ::CloseHandle(reading);
    set_errno(reason);
    return {};
  }
  ::CloseHandle(process.hThread);
  return ChildProcess(reinterpret_cast<intptr_t>(process.hProcess), reinterpret_cast<intptr_t>(reading));
}

ChildProcess::~ChildProcess() {
  if (process_ == kNone) return;
  if (output_ != kNone) {
    ::CloseHandle(handle_of(output_));
    ::TerminateProcess(handle_of(process_), 1);
  }
  ::WaitForSingleObject(handle_of(process_), INFINITE);
  ::CloseHandle(handle_of(process_));
}

// Programs end lines by a carriage return and a line feed.
size_t ChildProcess::read(std::span<char> out) {
  DWORD count = 0;
  do {
    if (!::ReadFile(handle_of(output_), out.data(), static_cast<DWORD>(out.size()), &count, nullptr))
      return 0;
    count = static_cast<DWORD>(std::remove(out.begin(), out.begin() + count, '\r') - out.begin());
  } while (count == 0);
  return count;
}

void ChildProcess::close_output() { ::CloseHandle(handle_of(std::exchange(output_, kNone))); }

void show_in_browser(const std::string& url) {
  ::ShellExecuteW(nullptr, L"open", wide(url).c_str(), nullptr, nullptr, SW_SHOWNORMAL);
}

}  // namespace doppler
