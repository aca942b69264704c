// Threads that make results in any order, and one caller that takes them in order: for converting pieces of a model,
// where only a few results may wait in memory. Not part of the WebAssembly build.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"

namespace doppler::formats {

// Calls make(i) for i in [first, count) on `threads` threads, and take(i, result) in order of i on the calling one.
// At most 2 results a thread are under way or waiting. The first error, in order of i, ends it. before(i) is called
// in order on the calling thread before make(i) may start.
template <class T>
Result<> work_in_order(size_t first, size_t count, uint32_t threads,
                       const std::function<Result<>(size_t)>& before,
                       const std::function<Result<T>(size_t)>& make,
                       const std::function<Result<>(size_t, T)>& take) {
  struct Slot {
    bool ready = false;
    Result<T> result = T();
  };
  const size_t window = 2 * static_cast<size_t>(threads);
  std::vector<Slot> slots(window);
  std::mutex mutex;
  std::condition_variable work_there, result_there;
  size_t offered = first, begun = first;
  bool stop = false;

  const auto worker = [&] {
    std::unique_lock lock(mutex);
    while (true) {
      work_there.wait(lock, [&] { return stop || begun < offered; });
      if (stop) return;
      const size_t i = begun++;
      lock.unlock();
      Result<T> result = make(i);
      lock.lock();
      slots[i % window].result = std::move(result);
      slots[i % window].ready = true;
      result_there.notify_one();
    }
  };
  std::vector<std::thread> pool;
  for (uint32_t t = 0; t < threads; ++t) pool.emplace_back(worker);

  const auto run = [&]() -> Result<> {
    for (size_t taken = first; taken < count; ++taken) {
      for (; offered < std::min(count, taken + window);) {
        if (before) DP_CHECK(before(offered));
        std::lock_guard lock(mutex);
        ++offered;
        work_there.notify_one();
      }
      std::unique_lock lock(mutex);
      Slot& slot = slots[taken % window];
      result_there.wait(lock, [&] { return slot.ready; });
      slot.ready = false;
      Result<T> result = std::move(slot.result);
      lock.unlock();
      if (!result) return forward(std::move(result).error());
      DP_CHECK(take(taken, std::move(*result)));
    }
    return {};
  };
  const Result<> done = run();
  {
    std::lock_guard lock(mutex);
    stop = true;
  }
  work_there.notify_all();
  for (std::thread& thread : pool) thread.join();
  return done;
}

}  // namespace doppler::formats
