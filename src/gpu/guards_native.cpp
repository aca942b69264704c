// File descriptor and signal work; see guards_native.h.
#include "gpu/guards_native.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <mutex>

#include "base/log.h"
#include "base/text.h"

namespace doppler::gpu {
namespace {

thread_local int guarded_calls = 0;
std::atomic<bool> is_own_process = false;

constexpr char kAbortSentence[] =
    "error: the WebGPU provider wgpu-native gave up, most likely because the GPU device was lost.\n"
    "  It cannot recover inside this program; start again, or use Dawn (--webgpu dawn), which can.\n";

void on_abort(int) {
  if (guarded_calls > 0) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kAbortSentence, sizeof kAbortSentence - 1);
    _exit(1);
  }
  std::signal(SIGABRT, SIG_DFL);
  raise(SIGABRT);
}

}  // namespace

void own_process() { is_own_process = true; }
bool owns_process() { return is_own_process; }

StderrCapture::StderrCapture() {
  if (!owns_process()) return;
  std::fflush(stderr);
  file_ = memfd_create("doppler-provider-output", MFD_CLOEXEC);
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
  for (const std::string& line : split(std::string_view(text, static_cast<size_t>(count)), '\n')) {
    if (!trim(line).empty()) log(LogLevel::kDebug, "the provider printed: %s", printable(line, 300).c_str());
  }
}

AbortGuard::AbortGuard() { ++guarded_calls; }
AbortGuard::~AbortGuard() { --guarded_calls; }

void AbortGuard::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction current = {};
    if (sigaction(SIGABRT, nullptr, &current) == 0 && current.sa_handler == SIG_DFL)
      std::signal(SIGABRT, on_abort);
  });
}

}  // namespace doppler::gpu
