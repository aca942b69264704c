// The list of watched ranges and the handler, which calls nothing but mmap, a plain system call.
#include "base/cut_files_posix.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <mutex>

namespace doppler {

struct WatchedRange {
  std::atomic<uintptr_t> begin = 0, end = 0;  // begin 0: free
  std::atomic<bool> cut = false;
  WatchedRange* next = nullptr;
};

namespace {

std::atomic<WatchedRange*> g_ranges = nullptr;
struct sigaction g_before{};
uintptr_t g_page_bytes = 0;

// All that follows in the range is gone too, so one signal is enough.
bool replace_by_zeros(WatchedRange& range, uintptr_t address) {
  const uintptr_t begin = range.begin.load(), end = range.end.load();
  if (begin == 0 || address < begin || address >= end) return false;
  const uintptr_t page = address / g_page_bytes * g_page_bytes;
  range.cut.store(true);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the address comes from the signal
  return ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

void on_bus_error(int number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (info->si_code == BUS_ADRERR) {
    for (WatchedRange* range = g_ranges.load(); range; range = range->next) {
      if (replace_by_zeros(*range, address)) return;
    }
  }
  // Not ours: what was there before gets it, when the instruction is tried again.
  ::sigaction(number, &g_before, nullptr);
  if (info->si_code <= 0) ::raise(number);  // somebody sent it
}

void install() {
  g_page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &g_before);
}

}  // namespace

WatchedRange* watch_range(const uint8_t* data, size_t bytes) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static const bool installed = (install(), true);
  static_cast<void>(installed);
  WatchedRange* range = g_ranges.load();
  while (range && range->begin.load() != 0) range = range->next;
  const bool is_new = !range;
  // The list keeps it for good.
  if (is_new) range = std::make_unique<WatchedRange>().release();
  range->cut.store(false);
  range->end.store(reinterpret_cast<uintptr_t>(data) + bytes);
  range->begin.store(reinterpret_cast<uintptr_t>(data));
  if (is_new) {
    range->next = g_ranges.load();
    g_ranges.store(range);
  }
  return range;
}

void unwatch_range(WatchedRange* range) {
  if (range) range->begin.store(0);
}

bool was_cut(const WatchedRange* range) { return range && range->cut.load(); }

}  // namespace doppler
