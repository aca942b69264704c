#include "server/mailbox.h"

#include <event2/event.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace doppler::server {

std::shared_ptr<Mailbox> Mailbox::open(event_base* base) {
  std::shared_ptr<Mailbox> made(new Mailbox);
  made->wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (made->wake_ < 0) return nullptr;
  made->event_ = event_new(
      base, made->wake_, EV_READ | EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<Mailbox*>(self)->deliver(); }, made.get());
  if (!made->event_ || event_add(made->event_, nullptr) != 0) return nullptr;
  return made;
}

Mailbox::~Mailbox() {
  close();
  if (wake_ >= 0) ::close(wake_);
}

void Mailbox::post(std::function<void()> letter) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  letters_.push_back(std::move(letter));
  if (letters_.size() > 1) return;  // woken already
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
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
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(wake_, &count, sizeof count);
  std::vector<std::function<void()>> letters;
  {
    const std::lock_guard lock(mutex_);
    letters.swap(letters_);
  }
  for (const std::function<void()>& letter : letters) letter();
}

}  // namespace doppler::server
