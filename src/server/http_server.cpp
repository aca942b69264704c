#include "server/http_server.h"

#include <event2/event.h>
#include <event2/listener.h>
#include <event2/util.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>  // for a macro of libevent
#include <map>

#include "base/log.h"
#include "base/process.h"
#include "base/sockets.h"
#include "base/text.h"

namespace doppler::server {
namespace {

constexpr uint64_t kOtherFiles = 64;  // what the process has open besides connections
constexpr auto kLeastWait = std::chrono::seconds(1);
constexpr std::string_view kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

void log_libevent(int severity, const char* text) {
  log(severity >= EVENT_LOG_WARN ? LogLevel::kWarning : LogLevel::kDebug, "libevent: %s", text);
}

// As many connections as files may be open.
uint32_t connections_allowed(uint32_t wanted) {
  const uint64_t files = raise_open_files(wanted + kOtherFiles);
  return static_cast<uint32_t>(
      std::min<uint64_t>(wanted, files > 2 * kOtherFiles ? files - kOtherFiles : kOtherFiles));
}

}  // namespace

struct HttpServer::State : ConnectionOwner {
  HttpOptions options;
  HttpHandlers handlers;
  event_base* base = nullptr;
  evconnlistener* listener = nullptr;
  event* signals[2] = {};
  std::shared_ptr<Mailbox> mailbox;
  std::map<Connection*, std::unique_ptr<Connection>> connections;
  std::atomic<size_t> count = 0;
  std::atomic<bool> ending = false;
  uint16_t port = 0;

  ~State() override {
    connections.clear();
    if (mailbox) mailbox->close();
    if (listener) evconnlistener_free(listener);
    for (event* signal : signals) {
      if (signal) event_free(signal);
    }
    if (base) event_base_free(base);
  }

  // The connection that waited longest for its client leaves for a new one, so that no client fills the server by
  // sending nothing. False: all are answered, or have only just come.
  bool make_room() {
    Connection* longest = nullptr;
    Clock::time_point since = Clock::now() - kLeastWait;
    for (const auto& [connection, owned] : connections) {
      const auto waiting = connection->waiting_since();
      if (!waiting || *waiting > since) continue;
      longest = connection;
      since = *waiting;
    }
    if (!longest) return false;
    longest->close();
    on_closed(longest);
    return true;
  }

  void accept(SocketNumber socket, const sockaddr* address, int length) {
    if (connections.size() >= options.most_connections && !make_room()) {
      send_now(socket, kTooMany);
      evutil_closesocket(socket);
      return;
    }
    send_without_delay(socket);
    auto made = std::make_unique<Connection>(*this, base, mailbox, socket, address_text(address, length),
                                             options.limits, options.timeouts);
    if (!made->is_open()) return;
    connections.emplace(made.get(), std::move(made));
    count = connections.size();
  }

  void on_request(std::shared_ptr<Exchange> exchange) override { handlers.on_request(std::move(exchange)); }
  std::string refusal_body(const HttpRefusal& refusal) override { return handlers.refusal_body(refusal); }
  void on_finished(const Exchange& exchange) override {
    handlers.on_finished(exchange);
    if (ending) mailbox->post([this] { end_if_idle(); });
  }
  bool is_ending() const override { return ending; }
  void on_closed(Connection* connection) override {
    // Its own functions are still on the stack.
    mailbox->post([this, connection] {
      connections.erase(connection);
      count = connections.size();
      end_if_idle();
    });
  }

  void end_if_idle() {
    if (!ending) return;
    const bool is_busy =
        std::ranges::any_of(connections, [](const auto& item) { return item.second->is_answering(); });
    if (!is_busy) event_base_loopexit(base, nullptr);
  }
  void on_signal() {
    if (ending.exchange(true)) {
      event_base_loopbreak(base);
      return;
    }
    evconnlistener_free(std::exchange(listener, nullptr));
    const timeval grace{.tv_sec = static_cast<decltype(timeval::tv_sec)>(options.drain_seconds),
                        .tv_usec = 0};
    event_base_loopexit(base, &grace);
    end_if_idle();
  }

  Result<void> listen() {
    evutil_addrinfo hints{};
    hints.ai_flags = EVUTIL_AI_PASSIVE | EVUTIL_AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    evutil_addrinfo* found = nullptr;
    const std::string service = std::to_string(options.port);
    if (const int error = evutil_getaddrinfo(options.host.c_str(), service.c_str(), &hints, &found);
        error != 0) {
      return fail(ErrorKind::kInvalidInput, "Address \"%s\" cannot be listened at: %s.",
                  printable(options.host).c_str(), evutil_gai_strerror(error));
    }
    listener = evconnlistener_new_bind(
        base,
        [](evconnlistener*, evutil_socket_t socket, sockaddr* address, int length, void* self) {
          static_cast<State*>(self)->accept(socket, address, length);
        },
        this, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, SOMAXCONN, found->ai_addr,
        static_cast<int>(found->ai_addrlen));
    const int error = EVUTIL_SOCKET_ERROR();
    evutil_freeaddrinfo(found);
    if (!listener) {
      return fail(ErrorKind::kIo, "Cannot listen at %s port %u: %s.", options.host.c_str(), options.port,
                  evutil_socket_error_to_string(error));
    }
    port = port_of(evconnlistener_get_fd(listener));
    if (port == 0) return fail(ErrorKind::kIo, "The port of %s is not known.", options.host.c_str());
    return {};
  }
};

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::open(HttpOptions options, HttpHandlers handlers) {
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  state->options.most_connections = connections_allowed(state->options.most_connections);
  state->handlers = std::move(handlers);
  event_set_log_callback(log_libevent);
  ignore_closed_pipes();  // a client that goes away is no reason to end
  if (!start_sockets()) return fail(ErrorKind::kIo, "This system has no sockets.");
  state->base = event_base_new();
  if (state->base) state->mailbox = Mailbox::open(state->base);
  if (!state->mailbox) return fail(ErrorKind::kInternal, "libevent could not be started.");
  DP_CHECK(state->listen());
  const int numbers[] = {SIGINT, SIGTERM};
  for (int i = 0; i < 2; ++i) {
    state->signals[i] = evsignal_new(
        state->base, numbers[i],
        [](evutil_socket_t, short, void* self) { static_cast<State*>(self)->on_signal(); }, state.get());
    if (!state->signals[i] || evsignal_add(state->signals[i], nullptr) != 0) {
      return fail(ErrorKind::kInternal, "libevent cannot watch for signals.");
    }
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

uint16_t HttpServer::port() const { return state_->port; }
size_t HttpServer::connection_count() const { return state_->count; }
bool HttpServer::is_ending() const { return state_->ending; }

std::string HttpServer::url() const {
  const std::string& host = state_->options.host;
  const bool is_v6 = host.find(':') != std::string::npos;
  return format_text("http://%s%s%s:%u", is_v6 ? "[" : "", host.c_str(), is_v6 ? "]" : "", state_->port);
}

Result<void> HttpServer::run() {
  if (event_base_dispatch(state_->base) < 0) return fail(ErrorKind::kIo, "The server's event loop failed.");
  return {};
}

}  // namespace doppler::server
