// process.h by calls of Windows.
#include "base/process.h"
#include "base/system_windows.h"
// After windows.h, which they need.
#include <fcntl.h>
#include <io.h>
#include <shellapi.h>
#include <winternl.h>

#include <cstdio>

namespace doppler {

std::vector<std::string> begin_program(int /*argc*/, char** /*argv*/) {
  for (std::FILE* stream : {stdin, stdout, stderr}) ::_setmode(::_fileno(stream), _O_BINARY);
  ::SetConsoleOutputCP(CP_UTF8);
  ::SetConsoleCP(CP_UTF8);
  for (const DWORD which : {STD_OUTPUT_HANDLE, STD_ERROR_HANDLE}) {
    HANDLE console = ::GetStdHandle(which);
    DWORD mode = 0;
    if (::GetConsoleMode(console, &mode))
      ::SetConsoleMode(console, mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  }
  int count = 0;
  wchar_t** const words = ::CommandLineToArgvW(::GetCommandLineW(), &count);
  std::vector<std::string> out;
  for (int i = 1; i < count; ++i) out.push_back(narrow(words[i]));
  ::LocalFree(words);
  return out;
}

namespace {

HANDLE handle_of(StandardStream stream) {
  constexpr DWORD kHandles[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
  return ::GetStdHandle(kHandles[static_cast<size_t>(stream)]);
}

}  // namespace

bool is_terminal(StandardStream stream) {
  DWORD mode = 0;
  return ::GetConsoleMode(handle_of(stream), &mode) != 0;
}

bool is_pipe(StandardStream stream) { return ::GetFileType(handle_of(stream)) == FILE_TYPE_PIPE; }

uint64_t process_id() { return ::GetCurrentProcessId(); }

uint64_t machine_memory_bytes() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  return ::GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : 0;
}

// The time when the machine started.
std::string boot_id() {
  struct {
    LARGE_INTEGER boot_time;
    uint8_t others[40];
  } told{};
  constexpr auto kTimeOfDay = static_cast<SYSTEM_INFORMATION_CLASS>(3);
  if (::NtQuerySystemInformation(kTimeOfDay, &told, sizeof told, nullptr) < 0) return {};
  constexpr LONGLONG kTicksOfSecond = 10'000'000;
  return std::to_string(told.boot_time.QuadPart / kTicksOfSecond);
}

uint64_t raise_open_files(uint64_t /*wanted*/) { return most_open_files(); }
uint64_t most_open_files() { return UINT64_MAX; }  // sockets and handles have no such limit here
void ignore_closed_pipes() {}                      // the system has no signal for it

}  // namespace doppler
