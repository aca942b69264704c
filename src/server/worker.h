// A thread with a queue of work, which it does in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace doppler::server {

class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // From any thread. After stop() work is dropped.
  void post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(work));
    came_.notify_one();
  }
  // Does what is queued, then ends the thread. Not from that thread.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      came_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    while (true) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        came_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace doppler::server
