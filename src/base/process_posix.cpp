// process.h by POSIX calls.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "base/process.h"

#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

namespace doppler {

std::vector<std::string> begin_program(int argc, char** argv) { return {argv + 1, argv + argc}; }

namespace {

constexpr int kNumbers[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};

}  // namespace

bool is_terminal(StandardStream stream) { return ::isatty(kNumbers[static_cast<size_t>(stream)]) == 1; }

bool is_pipe(StandardStream stream) {
  struct stat facts{};
  return ::fstat(kNumbers[static_cast<size_t>(stream)], &facts) == 0 && S_ISFIFO(facts.st_mode);
}

uint64_t process_id() { return static_cast<uint64_t>(::getpid()); }

uint64_t machine_memory_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string boot_id() {
#ifdef __APPLE__
  char id[64] = {};
  size_t room = sizeof id;
  return ::sysctlbyname("kern.bootsessionuuid", id, &room, nullptr, 0) == 0 ? id : "";
#else
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
#endif
}

uint64_t raise_open_files(uint64_t wanted) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return UINT64_MAX;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, std::max<rlim_t>(files.rlim_cur, wanted));
  ::setrlimit(RLIMIT_NOFILE, &files);
  return most_open_files();
}

uint64_t most_open_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return files.rlim_cur;
}

void ignore_closed_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace doppler
