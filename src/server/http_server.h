// HTTP over libevent's event loop: one thread for all connections. It listens, holds limits and ends in order; what a
// request means is its handler's matter.
// evhttp, which serve-models has, is not used here: it has no deadline for a head or a body, and does not notice that a
// client left while its answer is prepared.
// Read next: connection.h, exchange.h.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/connection.h"

namespace doppler::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
  uint32_t most_connections = 1024;
  uint32_t drain_seconds = 30;  // for answers under way when the server is to end
  HttpLimits limits;
  HttpTimeouts timeouts;
};

struct HttpHandlers {
  std::function<void(std::shared_ptr<Exchange>)> on_request;    // must not wait
  std::function<std::string(const HttpRefusal&)> refusal_body;  // JSON
  std::function<void(const Exchange&)> on_finished;
};

class HttpServer {
 public:
  // Listens already; requests are answered in run(). Errors: the address is taken, unknown or not allowed.
  static Result<std::unique_ptr<HttpServer>> open(HttpOptions options, HttpHandlers handlers);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8080"
  size_t connection_count() const;
  // Until SIGINT or SIGTERM: the first one ends listening and lets answers under way end, the second one does not.
  Result<void> run();
  bool is_ending() const;

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace doppler::server
