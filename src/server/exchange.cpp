#include "server/exchange.h"

#include "server/connection.h"

namespace doppler::server {

Exchange::Exchange(HttpRequest request, std::string id, std::string peer, std::shared_ptr<Mailbox> mailbox,
                   Connection* connection)
    : request_(std::move(request)),
      id_(std::move(id)),
      peer_(std::move(peer)),
      mailbox_(std::move(mailbox)),
      connection_(connection) {}

void Exchange::reply(int status, std::string body, std::string content_type, HttpFields fields) {
  if (has_begun_.exchange(true)) return;
  has_ended_ = true;
  status_ = status;
  sent_ = body.size();
  fields.insert(fields.end(), fields_.begin(), fields_.end());
  mailbox_->post([self = shared_from_this(), status, body = std::move(body), type = std::move(content_type),
                  fields = std::move(fields)] {
    if (self->connection_) self->connection_->reply(status, type, fields, body);
  });
}

void Exchange::begin(int status, std::string content_type, HttpFields fields) {
  if (has_begun_.exchange(true)) return;
  status_ = status;
  fields.insert(fields.end(), fields_.begin(), fields_.end());
  mailbox_->post(
      [self = shared_from_this(), status, type = std::move(content_type), fields = std::move(fields)] {
        if (self->connection_) self->connection_->begin(status, type, fields);
      });
}

void Exchange::write(std::string bytes) {
  if (has_ended_ || is_gone_ || bytes.empty()) return;
  sent_ += bytes.size();
  unsent_ += bytes.size();
  mailbox_->post([self = shared_from_this(), bytes = std::move(bytes)] {
    if (self->connection_) self->connection_->write(bytes);
  });
}

void Exchange::end() {
  if (has_ended_.exchange(true)) return;
  mailbox_->post([self = shared_from_this()] {
    if (self->connection_) self->connection_->end();
  });
}

void Exchange::on_gone(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_gone_) {
      on_gone_ = std::move(call);
      return;
    }
  }
  call();
}

void Exchange::cancel() {
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex_);
    call = std::exchange(on_gone_, nullptr);
  }
  if (call) call();
}

void Exchange::on_drained(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  on_drained_ = std::move(call);
}

void Exchange::tell(GenerationFacts facts) {
  const std::lock_guard lock(mutex_);
  facts_ = std::move(facts);
}

GenerationFacts Exchange::facts() const {
  const std::lock_guard lock(mutex_);
  return facts_;
}

// No callback runs after this, so that the objects that they hold are free.
void Exchange::closed() {
  connection_ = nullptr;
  std::function<void()> call, dropped;
  {
    const std::lock_guard lock(mutex_);
    is_gone_ = true;
    call = std::exchange(on_gone_, nullptr);
    dropped = std::exchange(on_drained_, nullptr);
  }
  if (call && !has_ended_) call();
}

void Exchange::drained(size_t left) {
  const bool was_congested = is_congested();
  unsent_ = left;
  if (!was_congested || is_congested()) return;
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex_);
    call = on_drained_;
  }
  if (call) call();
}

}  // namespace doppler::server
