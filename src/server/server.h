// `doppler serve`: models over HTTP for the clients that people have. The server's parts put together: who may ask
// (gate.h), which endpoint answers (routes.h), what is said in the log.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/gate.h"
#include "server/http_server.h"
#include "server/remote_pictures.h"
#include "server/service.h"

namespace doppler::server {

struct ServerOptions {
  HttpOptions http;
  GateOptions gate;
  ServiceOptions service;
  FetchPicture fetch_picture = {};  // empty: addresses of pictures are refused
  bool logs_json = false;           // the access line of each request as JSON
};

class Server {
 public:
  // Listens already. The first model begins to load in run(). Errors: those of HttpServer::open() and check_gate().
  static Result<std::unique_ptr<Server>> open(ServerOptions options, std::vector<ModelSource> sources);
  ~Server();

  std::string url() const;
  uint16_t port() const;
  Result<void> run();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace doppler::server
