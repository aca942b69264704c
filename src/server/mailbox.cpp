#include "server/mailbox.h"

#include <event2/event.h>
#include <event2/util.h>

namespace doppler::server {

std::shared_ptr<Mailbox> Mailbox::open(event_base* base) {
  std::shared_ptr<Mailbox> made(new Mailbox);
  if (evutil_socketpair(AF_UNIX, SOCK_STREAM, 0, made->wake_) != 0) return nullptr;
  for (const evutil_socket_t end : made->wake_) {
    if (evutil_make_socket_nonblocking(end) != 0 || evutil_make_socket_closeonexec(end) != 0) return nullptr;
  }
  made->event_ = event_new(
      base, made->wake_[0], EV_READ | EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<Mailbox*>(self)->deliver(); }, made.get());
  if (!made->event_ || event_add(made->event_, nullptr) != 0) return nullptr;
  return made;
}

Mailbox::~Mailbox() {
  close();
  for (const evutil_socket_t end : wake_) {
    if (end != -1) evutil_closesocket(end);
  }
}

void Mailbox::post(std::function<void()> letter) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  letters_.push_back(std::move(letter));
  if (letters_.size() > 1) return;  // woken already
  send_now(wake_[1], "!");
}

void Mailbox::close() {
  std::vector<std::function<void()>> dropped;  // ends outside of the lock: a letter may hold what posts
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(letters_);
  }
  if (event_) event_free(event_);
  event_ = nullptr;
}

void Mailbox::deliver() {
  drain(wake_[0]);
  std::vector<std::function<void()>> letters;
  {
    const std::lock_guard lock(mutex_);
    letters.swap(letters_);
  }
  for (const std::function<void()>& letter : letters) letter();
}

}  // namespace doppler::server
