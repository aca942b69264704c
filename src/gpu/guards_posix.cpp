// guards_native.h by file descriptors and signals of POSIX.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <mutex>

#include "gpu/guards_native.h"
#include "gpu/guards_parts.h"

namespace doppler::gpu {
namespace {

void on_abort(int) {
  if (is_guarded()) {
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, kAbortSentence.data(), kAbortSentence.size());
    _exit(1);
  }
  std::signal(SIGABRT, SIG_DFL);
  raise(SIGABRT);
}

}  // namespace

StderrCapture::StderrCapture() {
  if (!owns_process()) return;
  std::fflush(stderr);
#ifdef __APPLE__
  if (std::FILE* file = std::tmpfile()) {
    file_ = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
    std::fclose(file);
  }
#else
  file_ = memfd_create("doppler-provider-output", MFD_CLOEXEC);
#endif
  saved_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (file_ >= 0 && saved_ >= 0) dup2(file_, STDERR_FILENO);
}

StderrCapture::~StderrCapture() {
  if (saved_ >= 0) {
    std::fflush(stderr);
    dup2(saved_, STDERR_FILENO);
    close(saved_);
  }
  if (file_ < 0) return;
  char text[4096];
  const ssize_t count = pread(file_, text, sizeof text, 0);
  close(file_);
  if (count <= 0) return;
  log_prints({text, static_cast<size_t>(count)});
}

void AbortGuard::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction current = {};
    if (sigaction(SIGABRT, nullptr, &current) == 0 && current.sa_handler == SIG_DFL)
      std::signal(SIGABRT, on_abort);
  });
}

}  // namespace doppler::gpu
