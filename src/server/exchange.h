// One request and its answer. The request may be read and the answer given from any thread; what is given reaches the
// socket on the event loop's thread, in order, and nothing waits for the client.
// Read next: http_server.h.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "server/http_parser.h"
#include "server/mailbox.h"

namespace doppler::server {

class Connection;  // connection.h

using Clock = std::chrono::steady_clock;

// Facts about a generation for the access log and the metrics. One that never began has an empty model.
struct GenerationFacts {
  std::string model;
  std::string finish;  // "stop", "length", "abort", "error"
  uint32_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, forced_tokens = 0, preemptions = 0;
  uint32_t drafted_tokens = 0, accepted_tokens = 0;
  std::string_view drafter;  // who drafted them
  double queued_seconds = 0, ttft_seconds = 0, decode_seconds = 0;
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(HttpRequest request, std::string id, std::string peer, std::shared_ptr<Mailbox> mailbox,
           Connection* connection);

  const HttpRequest& request() const { return request_; }
  const std::string& id() const { return id_; }      // "req_..."
  const std::string& peer() const { return peer_; }  // the client's address
  Clock::time_point begun() const { return begun_; }

  // Before an endpoint reads the body.
  void replace_body(std::string body) { request_.body = std::move(body); }
  // On the loop's thread, before the answer: what every answer of this request has.
  void add_fields(HttpFields fields) { fields_ = std::move(fields); }
  // A whole answer, or begin(), write() and end(). The first one given counts; calls after an end are dropped.
  void reply(int status, std::string body, std::string content_type = "application/json",
             HttpFields fields = {});
  void begin(int status, std::string content_type, HttpFields fields = {});
  void write(std::string bytes);
  void end();
  bool has_begun() const { return has_begun_; }

  // The client has left, or takes nothing; work for it may stop.
  bool is_gone() const { return is_gone_; }
  // As if the client had left, but it is still answered.
  void cancel();
  // `call` comes on the loop's thread; at once if it has happened. One each.
  void on_gone(std::function<void()> call);
  // Called each time when the client took so much that more is welcome again.
  void on_drained(std::function<void()> call);
  // True if so much waits for the client that it should take some before more is written.
  bool is_congested() const { return unsent_ > kMostUnsentBytes; }

  void tell(GenerationFacts facts);
  GenerationFacts facts() const;
  int status() const { return status_; }
  uint64_t sent_bytes() const { return sent_; }

 private:
  friend class Connection;
  static constexpr size_t kMostUnsentBytes = 256 << 10;

  // The rest is the connection's, on the loop's thread.
  void closed();
  void drained(size_t left);

  HttpRequest request_;
  const std::string id_, peer_;
  HttpFields fields_;
  const Clock::time_point begun_ = Clock::now();
  const std::shared_ptr<Mailbox> mailbox_;
  Connection* connection_;  // null: it is closed
  std::atomic<bool> has_begun_ = false, has_ended_ = false, is_gone_ = false;
  std::atomic<int> status_ = 0;
  std::atomic<uint64_t> sent_ = 0;
  std::atomic<size_t> unsent_ = 0;
  mutable std::mutex mutex_;  // of all below
  std::function<void()> on_gone_, on_drained_;
  GenerationFacts facts_;
};

}  // namespace doppler::server
