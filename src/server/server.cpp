#include "server/server.h"

#include <cstdio>
#include <ctime>

#include "base/log.h"
#include "base/text.h"
#include "server/routes.h"

namespace doppler::server {
namespace {

constexpr int kFetchers = 4;  // so that a slow host does not hold up the pictures of all others

// Writes one line for each request, with a stranger's words made printable.
std::string access_line(const Exchange& exchange, bool as_json) {
  const HttpRequest& request = exchange.request();
  const GenerationFacts facts = exchange.facts();
  const double seconds = std::chrono::duration<double>(Clock::now() - exchange.begun()).count();
  const auto rounded = [](double value) {
    return static_cast<double>(static_cast<int64_t>(value * 1e6)) / 1e6;
  };
  if (as_json) {
    Json line = {{"time", utc_text(std::time(nullptr))},
                 {"id", exchange.id()},
                 {"client", exchange.peer()},
                 {"method", request.method},
                 {"path", printable(request.path, 200)},
                 {"status", exchange.status()},
                 {"seconds", rounded(seconds)},
                 {"bytes", exchange.sent_bytes()}};
    if (!facts.model.empty()) {
      line.update({{"model", facts.model},
                   {"finish", facts.finish},
                   {"prompt_tokens", facts.prompt_tokens},
                   {"cached_tokens", facts.cached_tokens},
                   {"generated_tokens", facts.generated_tokens},
                   {"preemptions", facts.preemptions},
                   {"queued_seconds", rounded(facts.queued_seconds)},
                   {"ttft_seconds", rounded(facts.ttft_seconds)},
                   {"decode_seconds", rounded(facts.decode_seconds)}});
    }
    return to_text(line);
  }
  std::string out =
      format_text("%s %s %s %s %s %d %.3f s", utc_text(std::time(nullptr)).c_str(), exchange.id().c_str(),
                  exchange.peer().c_str(), printable(request.method, 20).c_str(),
                  printable(request.path, 200).c_str(), exchange.status(), seconds);
  if (!facts.model.empty()) {
    out += format_text(", %s: %s, %u prompt tokens (%u cached), %u generated, TTFT %.3f s",
                       facts.model.c_str(), facts.finish.c_str(), facts.prompt_tokens, facts.cached_tokens,
                       facts.generated_tokens, facts.ttft_seconds);
  }
  return out;
}

}  // namespace

struct Server::State {
  ServerOptions options;
  std::unique_ptr<HttpServer> http;
  std::unique_ptr<Service> service;
  Worker bodies;     // reads them
  Worker questions;  // about the server's state, which may have to wait for a device's step
  std::vector<std::unique_ptr<Worker>> fetchers;  // of pictures, if addresses are allowed
  size_t fetched = 0;                             // requests that went to them

  ~State() {
    // The order matters: first no more requests come, then no work begins, then the work under way ends.
    http.reset();
    fetchers.clear();
    bodies.stop();
    questions.stop();
    service.reset();
  }

  void on_request(const std::shared_ptr<Exchange>& exchange) {
    const HttpRequest& request = exchange->request();
    exchange->add_fields(cors_fields(options.gate, request));
    const bool is_health = request.path == "/health";
    if (request.method == "OPTIONS" && !options.gate.origin.empty()) return exchange->reply(204, "");
    if (const auto refusal = refusal_of(options.gate, request, !is_health)) {
      return reply_error(*exchange, refusal->status, refusal->sentence,
                         refusal->status == 401 ? "authentication_error" : "permission_error",
                         refusal->status == 401 ? "invalid_api_key" : nullptr);
    }
    if (http->is_ending()) {
      return reply_error(*exchange, 503, "The server is ending.", "server_error", nullptr,
                         {{"Retry-After", "5"}});
    }
    std::string allowed;
    const Route* route = find_route(request.method, request.path, &allowed);
    if (!route) {
      const char* type = is_for_anthropic(*exchange) ? "not_found_error" : "invalid_request_error";
      const std::string path = printable(request.method, 20) + " " + printable(request.path, 200);
      if (allowed.empty()) return reply_error(*exchange, 404, path + " is not served here.", type);
      return reply_error(*exchange, 405, path + " is not allowed; allowed is " + allowed + ".", type, nullptr,
                         {{"Allow", allowed}});
    }
    Call call{.exchange = exchange, .rest = {}};
    if (route->path.ends_with('*')) call.rest = request.path.substr(route->path.size() - 1);
    if (is_health) return route->handle(*service, call);  // also while a long body is read
    if (!fetchers.empty() && may_have_remote_pictures(request)) {
      Worker& fetcher = *fetchers[fetched++ % fetchers.size()];
      return fetcher.post(
          [this, route, call = std::move(call)]() mutable { fetch_pictures(*route, std::move(call)); });
    }
    Worker& worker = request.method == "POST" ? bodies : questions;
    worker.post([this, route, call = std::move(call)] { route->handle(*service, call); });
  }

  void fetch_pictures(const Route& route, Call call) {
    auto body = with_fetched_pictures(call.exchange->request().body, options.fetch_picture);
    if (!body) return reply_error(*call.exchange, body.error());
    call.exchange->replace_body(std::move(*body));
    bodies.post([this, &route, call = std::move(call)] { route.handle(*service, call); });
  }

  void on_finished(const Exchange& exchange) {
    service->metrics().count(exchange);
    std::printf("%s\n", access_line(exchange, options.logs_json).c_str());
    std::fflush(stdout);
  }
};

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::open(ServerOptions options, std::vector<ModelSource> sources) {
  DP_CHECK(check_gate(options.gate, options.http.host));
  DP_TRY(std::unique_ptr<PrivateFolder> folder, PrivateFolder::open(options.service.files_folder));
  auto files = FileStore::open(std::move(folder), options.service.files_bytes);
  auto state = std::make_unique<State>();
  State* of = state.get();
  state->options = std::move(options);
  for (int i = 0; state->options.fetch_picture && i < kFetchers; ++i)
    state->fetchers.push_back(std::make_unique<Worker>());
  state->service = std::make_unique<Service>(
      state->options.service, std::move(sources),
      [of] { return of->http ? of->http->connection_count() : 0; }, std::move(files));
  HttpHandlers handlers{.on_request = [of](std::shared_ptr<Exchange> exchange) { of->on_request(exchange); },
                        .refusal_body =
                            [](const HttpRefusal& refusal) {
                              return to_text(openai::error_body(refusal.sentence, "invalid_request_error"));
                            },
                        .on_finished = [of](const Exchange& exchange) { of->on_finished(exchange); }};
  DP_TRY(state->http, HttpServer::open(state->options.http, std::move(handlers)));
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

std::string Server::url() const { return state_->http->url(); }
uint16_t Server::port() const { return state_->http->port(); }

Result<void> Server::run() {
  state_->service->models().want(state_->service->models().all().front());
  return state_->http->run();
}

}  // namespace doppler::server
