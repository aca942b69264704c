// Connections of the listener. Each waits for the head of a request (idle), or an answer to it is under way (busy). All
// count, from accept to close.
#include "store/http_listener.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <event2/util.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <list>

#include "base/log.h"
#include "base/process.h"
#include "base/sockets.h"
#include "base/text.h"

namespace doppler::store {
namespace {

constexpr size_t kMostHeadBytes = 16 << 10;  // of a request: its line and header fields
constexpr int kGraceSeconds = 5;             // for answers under way when the server is to end
constexpr int kBacklog = 128;                // connections that wait for accept()
constexpr int kRetrySeconds = 1;             // after an accept() that failed
constexpr uint64_t kOwnFiles = 16;           // open files that are no connection's

void log_libevent(int severity, const char* text) {
  log(severity >= EVENT_LOG_WARN ? LogLevel::kWarning : LogLevel::kDebug, "libevent: %s", text);
}

// A connection may need two: its socket and the file that it sends.
uint32_t connections_that_fit(uint32_t wanted) {
  const uint64_t files = most_open_files();
  const uint64_t fitting = files > kOwnFiles + 2 ? (files - kOwnFiles) / 2 : 1;
  if (fitting >= wanted) return wanted;
  log(LogLevel::kWarning,
      "At most %llu connections are open at once, since this process may have %llu open files.",
      static_cast<unsigned long long>(fitting), static_cast<unsigned long long>(files));
  return static_cast<uint32_t>(fitting);
}

}  // namespace

struct HttpListener::State {
  struct Connection {
    State* server;
    bufferevent* stream;
    event* deadline;  // for the head of the next request
    bool is_busy = false, keeps_alive = true;
    std::list<Connection>::iterator place;
  };

  ListenOptions options;
  Answerer answer;
  uint32_t most_connections = 0;
  event_base* base = nullptr;
  evconnlistener* listener = nullptr;
  event* signals[2] = {};
  event* retry = nullptr;
  event* stop_check = nullptr;
  ev_token_bucket_cfg* rate = nullptr;
  bufferevent_rate_limit_group* rate_group = nullptr;
  uint16_t port = 0;
  std::list<Connection> idle, busy;  // idle: the oldest first
  bool is_ending = false, has_failed_accept = false;

  ~State() {
    while (!idle.empty()) close(idle.front());
    while (!busy.empty()) close(busy.front());
    for (event* one : {signals[0], signals[1], retry, stop_check}) {
      if (one) event_free(one);
    }
    if (listener) evconnlistener_free(listener);
    if (rate_group) bufferevent_rate_limit_group_free(rate_group);
    if (rate) ev_token_bucket_cfg_free(rate);
    if (base) event_base_free(base);
  }

  // ---- Connections

  timeval patience() const {
    return {.tv_sec = static_cast<decltype(timeval::tv_sec)>(options.timeout_seconds), .tv_usec = 0};
  }

  // If all are busy, new connections wait for accept().
  void update_listener() {
    if (!listener) return;
    const bool is_full = idle.empty() && busy.size() >= most_connections;
    if (is_full || has_failed_accept) {
      evconnlistener_disable(listener);
    } else {
      evconnlistener_enable(listener);
    }
  }

  void close(Connection& connection) {
    if (rate_group) bufferevent_remove_from_rate_limit_group(connection.stream);
    bufferevent_free(connection.stream);
    event_free(connection.deadline);
    (connection.is_busy ? busy : idle).erase(connection.place);
    update_listener();
    end_if_unused();
  }

  void on_accept(evutil_socket_t socket) {
    if (idle.size() + busy.size() >= most_connections) {
      if (idle.empty()) {
        evutil_closesocket(socket);
        return;
      }
      close(idle.front());
    }
    bufferevent* stream = bufferevent_socket_new(base, socket, BEV_OPT_CLOSE_ON_FREE);
    if (!stream) {
      evutil_closesocket(socket);
      return;
    }
    Connection& made =
        idle.emplace_back(Connection{.server = this, .stream = stream, .deadline = nullptr, .place = {}});
    made.place = std::prev(idle.end());
    made.deadline = evtimer_new(base, on_deadline, &made);
    bufferevent_setcb(stream, on_read, on_written, on_event, &made);
    bufferevent_setwatermark(stream, EV_READ, 0, kMostHeadBytes);
    const timeval seconds = patience();
    bufferevent_set_timeouts(stream, nullptr, &seconds);
    if (rate_group) bufferevent_add_to_rate_limit_group(stream, rate_group);
    bufferevent_enable(stream, EV_READ | EV_WRITE);
    evtimer_add(made.deadline, &seconds);
    update_listener();
  }

  void await_head(Connection& connection) {
    connection.is_busy = false;
    idle.splice(idle.end(), busy, connection.place);
    const timeval seconds = patience();
    evtimer_add(connection.deadline, &seconds);
    update_listener();
    on_read(connection);  // the next one may be here
  }

  void on_read(Connection& connection) {
    if (connection.is_busy) return;
    evbuffer* input = bufferevent_get_input(connection.stream);
    char peeked[2];
    while (evbuffer_copyout(input, peeked, 2) == 2 && std::memcmp(peeked, "\r\n", 2) == 0)
      evbuffer_drain(input, 2);
    const evbuffer_ptr end = evbuffer_search(input, "\r\n\r\n", 4, nullptr);
    if (end.pos < 0 && evbuffer_get_length(input) < kMostHeadBytes) return;
    evtimer_del(connection.deadline);
    connection.is_busy = true;
    busy.splice(busy.end(), idle, connection.place);
    update_listener();
    connection.keeps_alive = false;
    if (end.pos < 0) {
      send(connection, false,
           text_reply(AnswerHead(431), "The head of a request has at most 16 KiB here.\n"));
      return;
    }
    std::string text(static_cast<size_t>(end.pos) + 4, '\0');
    evbuffer_remove(input, text.data(), text.size());
    const auto head = parse_request_head(text);
    if (!head) {
      send(connection, false, text_reply(AnswerHead(400), "This is no request of HTTP/1.0 or 1.1.\n"));
      return;
    }
    connection.keeps_alive = head->keeps_alive && !head->has_body && !is_ending;  // no body is read
    log(LogLevel::kInfo, "%s %s", printable(head->method, 20).c_str(), printable(head->path, 300).c_str());
    send(connection, head->method == "HEAD", answer(*head));
  }

  void on_written(Connection& connection) {
    if (!connection.is_busy || evbuffer_get_length(bufferevent_get_output(connection.stream)) > 0) return;
    if (connection.keeps_alive && !is_ending) {
      await_head(connection);
    } else {
      close(connection);
    }
  }

  // The other side has ended or failed, or has taken no byte for too long.
  void on_event(Connection& connection, short what) {
    if ((what & BEV_EVENT_EOF) != 0 && connection.is_busy) {
      connection.keeps_alive = false;  // it asks for nothing more, but may still read
    } else {
      close(connection);
    }
  }

  // ---- Answers

  void send(Connection& connection, bool is_head, Reply reply) {
    if (!connection.keeps_alive) reply.fields.set("Connection", "close");
    if (reply.text) reply.fields.set("Content-Length", std::to_string(reply.text->size()));
    if (reply.part) reply.fields.set("Content-Length", std::to_string(reply.part->count));
    evbuffer* output = bufferevent_get_output(connection.stream);
    const std::string head = reply.fields.end();
    evbuffer_add(output, head.data(), head.size());
    if (is_head) return;
    if (reply.text) evbuffer_add(output, reply.text->data(), reply.text->size());
    // libevent sends this with sendfile where the system has it.
    if (reply.part && reply.part->count > 0) {
      evbuffer_add_file(output, reply.part->file.release_descriptor(),
                        static_cast<ev_off_t>(reply.part->first), static_cast<ev_off_t>(reply.part->count));
    }
  }

  // ---- The end

  void end_if_unused() {
    if (is_ending && busy.empty()) event_base_loopbreak(base);
  }
  void on_signal() {
    if (is_ending) {
      event_base_loopbreak(base);
      return;
    }
    is_ending = true;
    evconnlistener_free(listener);
    listener = nullptr;
    const timeval grace{.tv_sec = kGraceSeconds, .tv_usec = 0};
    event_base_loopexit(base, &grace);
    end_if_unused();
  }

  void on_accept_error() {
    if (!has_failed_accept)
      log(LogLevel::kWarning, "No connection can be accepted: %s.",
          evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
    has_failed_accept = true;
    update_listener();
    const timeval soon{.tv_sec = kRetrySeconds, .tv_usec = 0};
    evtimer_add(retry, &soon);
  }

  static Connection& of(void* self) { return *static_cast<Connection*>(self); }
  static void on_read(bufferevent*, void* self) { of(self).server->on_read(of(self)); }
  static void on_written(bufferevent*, void* self) { of(self).server->on_written(of(self)); }
  static void on_event(bufferevent*, short what, void* self) { of(self).server->on_event(of(self), what); }
  static void on_deadline(evutil_socket_t, short, void* self) { of(self).server->close(of(self)); }
  static void on_accept(evconnlistener*, evutil_socket_t socket, sockaddr*, int, void* self) {
    static_cast<State*>(self)->on_accept(socket);
  }
  static void on_accept_error(evconnlistener*, void* self) { static_cast<State*>(self)->on_accept_error(); }
  static void on_retry(evutil_socket_t, short, void* self) {
    static_cast<State*>(self)->has_failed_accept = false;
    static_cast<State*>(self)->update_listener();
  }
  static void on_signal(evutil_socket_t, short, void* self) { static_cast<State*>(self)->on_signal(); }
  static void on_stop_check(evutil_socket_t, short, void* self) {
    State* state = static_cast<State*>(self);
    if (*state->options.stop) event_base_loopbreak(state->base);
  }

  // The limit hands out bytes ten times a second.
  bool limit_rate() {
    constexpr uint64_t kTicks = 10;
    if (options.upload_bytes_per_second == 0) return true;
    const timeval tick{.tv_sec = 0, .tv_usec = 1'000'000 / kTicks};
    const auto bytes = static_cast<size_t>(
        std::clamp<uint64_t>(options.upload_bytes_per_second / kTicks, 1, EV_RATE_LIMIT_MAX));
    rate = ev_token_bucket_cfg_new(EV_RATE_LIMIT_MAX, EV_RATE_LIMIT_MAX, bytes, bytes, &tick);
    if (rate) rate_group = bufferevent_rate_limit_group_new(base, rate);
    return rate_group != nullptr;
  }

  // Watches for the end of run(): options.stop, or signals.
  bool watch_for_end() {
    if (options.stop) {
      const timeval often{.tv_sec = 0, .tv_usec = 100'000};
      stop_check = event_new(base, -1, EV_PERSIST, on_stop_check, this);
      return stop_check && event_add(stop_check, &often) == 0;
    }
    const int numbers[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; ++i) {
      signals[i] = evsignal_new(base, numbers[i], on_signal, this);
      if (!signals[i] || evsignal_add(signals[i], nullptr) != 0) return false;
    }
    return true;
  }

  Result<void> listen() {
    evutil_addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = EVUTIL_AI_PASSIVE | EVUTIL_AI_ADDRCONFIG;
    evutil_addrinfo* found = nullptr;
    const int problem =
        evutil_getaddrinfo(options.host.c_str(), std::to_string(options.port).c_str(), &hints, &found);
    if (problem != 0) {
      return fail(ErrorKind::kInvalidInput, "Cannot listen at %s: %s.", printable(options.host, 100).c_str(),
                  evutil_gai_strerror(problem));
    }
    for (const evutil_addrinfo* at = found; at && !listener; at = at->ai_next) {
      listener = evconnlistener_new_bind(base, on_accept, this,
                                         LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
                                         kBacklog, at->ai_addr, static_cast<int>(at->ai_addrlen));
    }
    const int error = EVUTIL_SOCKET_ERROR();
    evutil_freeaddrinfo(found);
    if (!listener) {
      return fail(ErrorKind::kIo, "Cannot listen at %s port %u: %s.", printable(options.host, 4096).c_str(),
                  options.port, evutil_socket_error_to_string(error));
    }
    evconnlistener_set_error_cb(listener, on_accept_error);
    return {};
  }
};

Reply text_reply(AnswerHead fields, std::string sentence) {
  fields.set("Content-Type", "text/plain; charset=utf-8");
  return {.fields = std::move(fields), .text = std::move(sentence)};
}

HttpListener::HttpListener(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpListener::~HttpListener() = default;

Result<std::unique_ptr<HttpListener>> HttpListener::open(ListenOptions options, Answerer answer) {
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  state->answer = std::move(answer);
  state->most_connections = connections_that_fit(state->options.most_connections);
  event_set_log_callback(log_libevent);
  ignore_closed_pipes();  // a reader that goes away is no reason to end
  if (!start_sockets()) return fail(ErrorKind::kIo, "This system has no sockets.");
  state->base = event_base_new();
  if (state->base) state->retry = evtimer_new(state->base, State::on_retry, state.get());
  if (!state->retry || !state->limit_rate())
    return fail(ErrorKind::kInternal, "libevent could not be started.");
  DP_CHECK(state->listen());
  state->port = port_of(evconnlistener_get_fd(state->listener));
  if (state->port == 0) {
    return fail(ErrorKind::kIo, "The port of %s is not known.", printable(state->options.host, 4096).c_str());
  }
  if (!state->watch_for_end()) return fail(ErrorKind::kInternal, "libevent cannot watch for the end.");
  return std::unique_ptr<HttpListener>(new HttpListener(std::move(state)));
}

uint16_t HttpListener::port() const { return state_->port; }

std::string HttpListener::url() const {
  const std::string& host = state_->options.host;
  const bool is_v6 = host.find(':') != std::string::npos;
  return format_text("http://%s%s%s:%u/", is_v6 ? "[" : "", host.c_str(), is_v6 ? "]" : "", state_->port);
}

Result<void> HttpListener::run() {
  if (event_base_dispatch(state_->base) < 0) return fail(ErrorKind::kIo, "The server's event loop failed.");
  return {};
}

}  // namespace doppler::store
