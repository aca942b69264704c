// guards_native.h by the C library of Windows. Output is caught in a file, since the system has none without a name.
#include <fcntl.h>
#include <io.h>

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

}  // namespace

StderrCapture::StderrCapture() {
  if (!owns_process()) return;
  std::fflush(stderr);
  if (std::FILE* file = std::tmpfile()) {
    file_ = ::_dup(::_fileno(file));
    std::fclose(file);
  }
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
