// parallel.h with threads.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/parallel.h"

namespace doppler {
namespace {

constexpr size_t kMostThreads = 16;  // memory is saturated long before

}  // namespace

void parallel_for(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto take_work = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  const size_t cores = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  std::vector<std::jthread> others;
  for (size_t i = 1; i < std::min(cores, count); ++i) others.emplace_back(take_work);
  take_work();
}

}  // namespace doppler
