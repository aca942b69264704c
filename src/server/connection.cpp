#include "server/connection.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <atomic>
#include <random>

#include "base/sockets.h"
#include "base/text.h"

namespace doppler::server {
namespace {

constexpr uint32_t kLingerSeconds = 2;
constexpr size_t kReadAheadBytes = 64 << 10;  // of a client that sends while it is answered

// Unlikely to be met twice, so that ids of several servers can be told apart.
std::string new_request_id() {
  static const uint32_t run = std::random_device()();
  static std::atomic<uint64_t> number = 0;
  return format_text("req_%08x%08llx", run, static_cast<unsigned long long>(++number));
}

timeval seconds_of(uint32_t seconds) {
  return {.tv_sec = static_cast<decltype(timeval::tv_sec)>(seconds), .tv_usec = 0};
}

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";  // as the standard allows; nothing here has another status
  }
}

}  // namespace

Connection::Connection(ConnectionOwner& owner, event_base* base, std::shared_ptr<Mailbox> mailbox,
                       SocketNumber socket, std::string peer, HttpLimits limits, HttpTimeouts timeouts)
    : owner_(owner),
      mailbox_(std::move(mailbox)),
      peer_(std::move(peer)),
      timeouts_(timeouts),
      parser_(limits) {
  deadline_ = evtimer_new(
      base, [](evutil_socket_t, short, void* self) { static_cast<Connection*>(self)->on_deadline(); }, this);
  buffer_ = bufferevent_socket_new(base, socket, BEV_OPT_CLOSE_ON_FREE);
  if (!buffer_ || !deadline_) {
    if (!buffer_) evutil_closesocket(socket);
    close();
    return;
  }
  bufferevent_setcb(
      buffer_, [](bufferevent*, void* self) { static_cast<Connection*>(self)->on_readable(); },
      [](bufferevent*, void* self) { static_cast<Connection*>(self)->on_written(); },
      [](bufferevent*, short what, void* self) { static_cast<Connection*>(self)->on_event(what); }, this);
  bufferevent_setwatermark(buffer_, EV_READ, 0, kReadAheadBytes);
  const timeval write = seconds_of(timeouts_.write_seconds);
  bufferevent_set_timeouts(buffer_, nullptr, &write);
  // Reading is on while a request is answered too: so the end of the connection is noticed at once.
  bufferevent_enable(buffer_, EV_READ | EV_WRITE);
  set_deadline(timeouts_.idle_seconds);
}

Connection::~Connection() { close(); }

void Connection::close() {
  if (deadline_) event_free(std::exchange(deadline_, nullptr));
  if (buffer_) bufferevent_free(std::exchange(buffer_, nullptr));
  finish_exchange();
}

void Connection::finish_exchange() {
  const std::shared_ptr<Exchange> exchange = std::exchange(exchange_, nullptr);
  if (!exchange) return;
  exchange->closed();
  owner_.on_finished(*exchange);
}

void Connection::set_deadline(uint32_t seconds) {
  if (!deadline_) return;
  const timeval time = seconds_of(seconds);
  seconds == 0 ? event_del(deadline_) : event_add(deadline_, &time);
}

size_t Connection::unsent() const { return evbuffer_get_length(bufferevent_get_output(buffer_)); }

void Connection::on_readable() {
  if (is_lingering_) {
    evbuffer* input = bufferevent_get_input(buffer_);
    evbuffer_drain(input, evbuffer_get_length(input));
    return;
  }
  read_requests();
}

// Takes what came up to the end of a request; the rest waits until that is answered.
void Connection::read_requests() {
  evbuffer* input = bufferevent_get_input(buffer_);
  while (!exchange_ && !is_closing_) {
    const size_t count = evbuffer_get_contiguous_space(input);
    if (count == 0) break;
    const auto* bytes = reinterpret_cast<const char*>(evbuffer_pullup(input, static_cast<ev_ssize_t>(count)));
    evbuffer_drain(input, parser_.push({bytes, count}));
    const HttpParser::State state = parser_.state();
    if (state == HttpParser::State::kRefused) return refuse(parser_.refusal());
    if (parser_.take_expects_continue()) send("HTTP/1.1 100 Continue\r\n\r\n");
    if (state != deadline_of_) {
      set_deadline(state == HttpParser::State::kHead ? timeouts_.head_seconds : timeouts_.body_seconds);
      deadline_of_ = state;
    }
    if (state != HttpParser::State::kDone) continue;
    set_deadline(0);
    HttpRequest request = parser_.take();
    deadline_of_ = HttpParser::State::kIdle;
    is_closing_ = !request.keeps_alive;
    exchange_ = std::make_shared<Exchange>(std::move(request), new_request_id(), peer_, mailbox_, this);
    owner_.on_request(exchange_);
    return;
  }
}

void Connection::refuse(const HttpRefusal& refusal) {
  is_closing_ = true;
  const std::string body = owner_.refusal_body(refusal);
  send_head(refusal.status, "application/json", {}, format_text("Content-Length: %zu\r\n", body.size()));
  send(body);
  finish_answer();
}

void Connection::on_deadline() {
  if (!is_lingering_ && parser_.state() != HttpParser::State::kIdle) {
    return refuse({.status = 408, .sentence = "The request did not arrive in time."});
  }
  close();
  owner_.on_closed(this);
}

void Connection::on_event(short what) {
  if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)) == 0) return;
  close();
  owner_.on_closed(this);
}

void Connection::send(std::string_view bytes) { bufferevent_write(buffer_, bytes.data(), bytes.size()); }

void Connection::send_head(int status, const std::string& content_type, const HttpFields& fields,
                           const std::string& framing) {
  if (owner_.is_ending()) is_closing_ = true;
  std::string head = format_text("HTTP/1.1 %d %s\r\n", status, reason(status));
  if (!content_type.empty()) head += "Content-Type: " + content_type + "\r\n";
  for (const auto& [name, value] : fields) head += name + ": " + value + "\r\n";
  if (exchange_) head += "X-Request-Id: " + exchange_->id() + "\r\n";
  if (is_closing_) {
    head += "Connection: close\r\n";
  } else if (exchange_ && exchange_->request().is_http_1_0) {
    head += "Connection: keep-alive\r\n";
  }
  send(head + framing + "\r\n");
}

void Connection::reply(int status, const std::string& content_type, const HttpFields& fields,
                       const std::string& body) {
  const bool has_body = exchange_->request().method != "HEAD" && status != 204;
  const std::string framing = status == 204 ? "" : format_text("Content-Length: %zu\r\n", body.size());
  send_head(status, status == 204 ? "" : content_type, fields, framing);
  if (has_body) send(body);
  finish_answer();
}

void Connection::begin(int status, const std::string& content_type, const HttpFields& fields) {
  is_chunked_ = !exchange_->request().is_http_1_0;
  if (!is_chunked_) is_closing_ = true;  // the end of the connection is the end of the body
  send_head(status, content_type, fields, is_chunked_ ? "Transfer-Encoding: chunked\r\n" : "");
}

void Connection::write(const std::string& bytes) {
  if (is_chunked_) send(format_text("%zx\r\n", bytes.size()));
  send(bytes);
  if (is_chunked_) send("\r\n");
}

void Connection::end() {
  if (is_chunked_) send("0\r\n\r\n");
  finish_answer();
}

// All of the answer is in the buffer.
void Connection::finish_answer() {
  finish_exchange();
  if (owner_.is_ending()) is_closing_ = true;
  if (is_closing_) {
    if (unsent() == 0) on_written();
    return;
  }
  set_deadline(timeouts_.idle_seconds);
  waiting_since_ = Clock::now();
  read_requests();
}

void Connection::on_written() {
  if (exchange_) exchange_->drained(unsent());
  if (!is_closing_ || exchange_ || is_lingering_) return;
  // Closing at once while bytes of the client are on their way would cost it the answer.
  is_lingering_ = true;
  end_sending(bufferevent_getfd(buffer_));
  evbuffer* input = bufferevent_get_input(buffer_);
  evbuffer_drain(input, evbuffer_get_length(input));
  set_deadline(kLingerSeconds);
}

}  // namespace doppler::server
