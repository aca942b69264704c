// Calls from other threads to the event loop's thread: it runs these functions in their order.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/sockets.h"

struct event;
struct event_base;

namespace doppler::server {

class Mailbox {
 public:
  // Null: there are no sockets left for it.
  static std::shared_ptr<Mailbox> open(event_base* base);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // From any thread. No function is called after close().
  void post(std::function<void()> letter);
  // On the loop's thread.
  void close();

 private:
  Mailbox() = default;
  void deliver();

  std::mutex mutex_;
  std::vector<std::function<void()>> letters_;
  bool closed_ = false;
  SocketNumber wake_[2] = {-1, -1};  // a byte sent on the second wakes the loop at the first
  event* event_ = nullptr;
};

}  // namespace doppler::server
