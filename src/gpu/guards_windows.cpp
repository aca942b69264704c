// guards_native.h by the C library of Windows. Output is caught in a file, since the system has none without a name.
#include "base/system_windows.h"
// After windows.h.
#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "gpu/guards_native.h"
#include "gpu/guards_parts.h"

namespace doppler::gpu {
namespace {

constexpr int kStderr = 2;

void on_abort(int) {
  if (is_guarded()) {
    ::_write(kStderr, kAbortSentence.data(), kAbortSentence.size());
    ::_exit(1);
  }
  std::signal(SIGABRT, SIG_DFL);
  std::raise(SIGABRT);
}

// A file that goes away when it is closed, or -1. tmpfile() makes it in the root folder, which takes an administrator.
int open_temporary() {
  static std::atomic<unsigned> count = 0;
  std::wstring path(MAX_PATH + 1, L'\0');
  path.resize(::GetTempPathW(static_cast<DWORD>(path.size()), path.data()));
  path += L"doppler-" + std::to_wstring(::GetCurrentProcessId()) + L"-" + std::to_wstring(++count);
  return ::_wopen(path.c_str(), _O_CREAT | _O_EXCL | _O_RDWR | _O_BINARY | _O_TEMPORARY | _O_NOINHERIT,
                  _S_IREAD | _S_IWRITE);
}

}  // namespace

StderrCapture::StderrCapture() {
  if (!owns_process()) return;
  std::fflush(stderr);
  file_ = open_temporary();
  saved_ = ::_dup(kStderr);
  if (file_ >= 0 && saved_ >= 0) ::_dup2(file_, kStderr);
}

StderrCapture::~StderrCapture() {
  if (saved_ >= 0) {
    std::fflush(stderr);
    ::_dup2(saved_, kStderr);
    ::_close(saved_);
  }
  if (file_ < 0) return;
  char text[4096];
  ::_lseek(file_, 0, SEEK_SET);
  const int count = ::_read(file_, text, sizeof text);
  ::_close(file_);
  if (count <= 0) return;
  log_prints({text, static_cast<size_t>(count)});
}

void AbortGuard::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    const auto before = std::signal(SIGABRT, on_abort);
    if (before != SIG_DFL) std::signal(SIGABRT, before);
  });
}

}  // namespace doppler::gpu
