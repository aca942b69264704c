// One client's connection on the event loop's thread: bytes to requests, one at a time, and answers to bytes. A
// deadline holds for each thing that the client has to do: begin a request, send its head, send its body, take its
// answer. Read next: connection.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/exchange.h"
#include "server/http_parser.h"

struct bufferevent;
struct event;
struct event_base;

namespace doppler::server {

struct HttpTimeouts {
  uint32_t idle_seconds = 75;   // until the first byte of a request, also of the next one
  uint32_t head_seconds = 10;   // from that byte to the head's end
  uint32_t body_seconds = 60;   // from there to the body's end
  uint32_t write_seconds = 30;  // in which the client takes some of its answer
};

// The services that a connection needs from its server.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  // A request is there; the answer goes through the exchange.
  virtual void on_request(std::shared_ptr<Exchange> exchange) = 0;
  // The bytes of an answer that refuses what is no request.
  virtual std::string refusal_body(const HttpRefusal& refusal) = 0;
  // An exchange is over, answered or not.
  virtual void on_finished(const Exchange& exchange) = 0;
  virtual bool is_ending() const = 0;
  // The connection is to be destroyed, once none of its calls runs any more.
  virtual void on_closed(Connection* connection) = 0;
};

class Connection {
 public:
  // Takes the socket. `peer`: the client's address.
  Connection(ConnectionOwner& owner, event_base* base, std::shared_ptr<Mailbox> mailbox, SocketNumber socket,
             std::string peer, HttpLimits limits, HttpTimeouts timeouts);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool is_open() const { return buffer_ != nullptr; }
  // An answer is prepared or on its way.
  bool is_answering() const { return exchange_ || (is_closing_ && is_open()); }
  // Since when it waits for its client to send a request; none: it answers one.
  std::optional<Clock::time_point> waiting_since() const {
    return exchange_ || is_closing_ || !is_open() ? std::nullopt : std::optional(waiting_since_);
  }
  void close();

  // For Exchange.
  void reply(int status, const std::string& content_type, const HttpFields& fields, const std::string& body);
  void begin(int status, const std::string& content_type, const HttpFields& fields);
  void write(const std::string& bytes);
  void end();

 private:
  void on_readable();
  void on_written();
  void on_event(short what);
  void on_deadline();
  void read_requests();
  void refuse(const HttpRefusal& refusal);
  void send_head(int status, const std::string& content_type, const HttpFields& fields,
                 const std::string& framing);
  void send(std::string_view bytes);
  void finish_answer();
  void finish_exchange();
  void set_deadline(uint32_t seconds);
  size_t unsent() const;

  ConnectionOwner& owner_;
  const std::shared_ptr<Mailbox> mailbox_;
  const std::string peer_;
  const HttpTimeouts timeouts_;
  HttpParser parser_;
  HttpParser::State deadline_of_ = HttpParser::State::kIdle;
  bufferevent* buffer_ = nullptr;
  event* deadline_ = nullptr;
  Clock::time_point waiting_since_ = Clock::now();
  std::shared_ptr<Exchange> exchange_;  // whose answer is under way
  bool is_chunked_ = false;             // the answer
  bool is_closing_ = false;             // when the answer is sent
  bool is_lingering_ = false;  // the answer is sent; later bytes of the client are dropped until it closes
};

}  // namespace doppler::server
