// child_process.h by pipes and posix_spawn().
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/child_process.h"
#include "base/own_folders_native.h"

#ifdef __APPLE__
#include <crt_externs.h>
#define environ (*_NSGetEnviron())
#endif

namespace doppler {
namespace {

std::vector<char*> arguments_of(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

bool make_pipe(int (&ends)[2]) {
#ifdef __APPLE__
  if (::pipe(ends) != 0) return false;
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  return true;
#else
  return ::pipe2(ends, O_CLOEXEC) == 0;
#endif
}

}  // namespace

std::optional<ChildProcess> ChildProcess::start(const std::vector<std::string>& words) {
  int ends[2];
  if (!make_pipe(ends)) return {};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const std::vector<char*> arguments = arguments_of(words);
  pid_t process = 0;
  const int code = ::posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (code == 0) return ChildProcess(process, ends[0]);
  ::close(ends[0]);
  errno = code;
  return {};
}

ChildProcess::~ChildProcess() {
  if (process_ == kNone) return;
  if (output_ != kNone) {
    ::close(static_cast<int>(output_));
    ::kill(static_cast<pid_t>(process_), SIGTERM);
  }
  ::waitpid(static_cast<pid_t>(process_), nullptr, 0);
}

size_t ChildProcess::read(std::span<char> out) {
  ssize_t count = 0;
  do {
    count = ::read(static_cast<int>(output_), out.data(), out.size());
  } while (count < 0 && errno == EINTR);
  return count > 0 ? static_cast<size_t>(count) : 0;
}

void ChildProcess::close_output() { ::close(static_cast<int>(std::exchange(output_, kNone))); }

void show_in_browser(const std::string& url) {
#ifdef __APPLE__
  const char* const program = "open";
#else
  if (environment_variable("DISPLAY").empty() && environment_variable("WAYLAND_DISPLAY").empty()) return;
  const char* const program = "xdg-open";
#endif
  const std::vector<std::string> words = {program, url};
  const std::vector<char*> arguments = arguments_of(words);
  pid_t child = 0;
  ::posix_spawnp(&child, program, nullptr, nullptr, arguments.data(), environ);
}

}  // namespace doppler
