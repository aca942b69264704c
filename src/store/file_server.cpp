#include "store/file_server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "store/served_file.h"

namespace doppler::store {
namespace {

constexpr size_t kMostHeadBytes = 16 << 10;  // of a request: its line and header fields
constexpr size_t kMostBodyBytes = 1024;      // of a request; none is read
constexpr int kGraceSeconds = 5;             // for answers under way when the server is to end
constexpr int kBacklogRetrySeconds = 2;      // told to those who find no free connection

const char* field(evhttp_request* request, const char* name) {
  const char* value = evhttp_find_header(evhttp_request_get_input_headers(request), name);
  return value ? value : "";
}

void set(evhttp_request* request, const char* name, const std::string& value) {
  evhttp_add_header(evhttp_request_get_output_headers(request), name, value.c_str());
}

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 304:
      return "Not Modified";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 416:
      return "Range Not Satisfiable";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

void log_libevent(int severity, const char* text) {
  log(severity >= EVENT_LOG_WARN ? LogLevel::kWarning : LogLevel::kDebug, "libevent: %s", text);
}

}  // namespace

struct FileServer::State {
  ServeOptions options;
  std::string root;
  event_base* base = nullptr;
  evhttp* http = nullptr;
  evhttp_bound_socket* listener = nullptr;
  event* signals[2] = {};
  uint16_t port = 0;
  std::set<evhttp_connection*> open, busy;
  bool is_ending = false;

  ~State() {
    for (event* signal : signals) {
      if (signal) event_free(signal);
    }
    if (http) evhttp_free(http);
    if (base) event_base_free(base);
  }

  void send_text(evhttp_request* request, int status, const std::string& sentence) {
    set(request, "Content-Type", "text/plain; charset=utf-8");
    set(request, "Content-Length", std::to_string(sentence.size()));
    evbuffer* body = evbuffer_new();
    if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
      evbuffer_add(body, sentence.data(), sentence.size());
    evhttp_send_reply(request, status, reason(status), body);
    evbuffer_free(body);
  }

  void send_file(evhttp_request* request, ServedFile& file, const Answer& answer) {
    const uint64_t first = answer.status == 206 ? answer.range.first : 0;
    const uint64_t count = answer.status == 206 ? answer.range.count() : file.bytes;
    set(request, "Content-Type", file.content_type);
    set(request, "Content-Length", std::to_string(count));
    if (answer.status == 206) {
      set(request, "Content-Range",
          format_text("bytes %llu-%llu/%llu", static_cast<unsigned long long>(first),
                      static_cast<unsigned long long>(first + count - 1),
                      static_cast<unsigned long long>(file.bytes)));
    }
    evbuffer* body = evbuffer_new();
    if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD && count > 0) {
      // Says that the bytes go to a socket, so that libevent takes sendfile instead of memory.
      evbuffer_set_flags(body, EVBUFFER_FLAG_DRAINS_TO_FD);
      evbuffer_add_file(body, file.file.release(), static_cast<ev_off_t>(first),
                        static_cast<ev_off_t>(count));
    }
    evhttp_send_reply(request, answer.status, reason(answer.status), body);
    evbuffer_free(body);
  }

  void set_origin(evhttp_request* request) {
    if (options.origin.empty()) {
      set(request, "Cross-Origin-Resource-Policy", "same-origin");
      return;
    }
    set(request, "Access-Control-Allow-Origin", options.origin);
    set(request, "Access-Control-Expose-Headers",
        "Accept-Ranges, Content-Length, Content-Range, ETag, Last-Modified");
    set(request, "Cross-Origin-Resource-Policy", options.origin == "*" ? "cross-origin" : "same-site");
    if (options.origin != "*") set(request, "Vary", "Origin");
  }

  void answer(evhttp_request* request) {
    set(request, "X-Content-Type-Options", "nosniff");
    set_origin(request);
    const evhttp_cmd_type method = evhttp_request_get_command(request);
    if (method == EVHTTP_REQ_OPTIONS) {
      set(request, "Access-Control-Allow-Methods", "GET, HEAD, OPTIONS");
      set(request, "Access-Control-Allow-Headers", "Range, If-Range, If-None-Match, If-Modified-Since");
      set(request, "Access-Control-Max-Age", "86400");
      evhttp_send_reply(request, 204, reason(204), nullptr);
      return;
    }
    if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
      set(request, "Allow", "GET, HEAD, OPTIONS");
      send_text(request, 405, "Only GET, HEAD and OPTIONS are answered.\n");
      return;
    }
    const evhttp_uri* uri = evhttp_request_get_evhttp_uri(request);
    const char* given = uri ? evhttp_uri_get_path(uri) : nullptr;
    std::string path = given ? given : "";
    if (path.ends_with('/')) path += options.index;
    auto file = open_served(root, path);
    if (!file) {
      send_text(request, 404, "There is no such file.\n");
      return;
    }
    set(request, "ETag", file->etag);
    set(request, "Last-Modified", file->last_modified);
    set(request, "Accept-Ranges", "bytes");
    set(request, "Cache-Control", "no-cache");  // kept, and asked about with its ETag before it is used
    const Answer result = answer_for(*file, {.range = field(request, "Range"),
                                             .if_range = field(request, "If-Range"),
                                             .if_none_match = field(request, "If-None-Match"),
                                             .if_modified_since = field(request, "If-Modified-Since")});
    if (result.status == 304) {
      evhttp_send_reply(request, 304, reason(304), nullptr);
    } else if (result.status == 416) {
      set(request, "Content-Range",
          format_text("bytes */%llu", static_cast<unsigned long long>(file->bytes)));
      send_text(request, 416, "The file has no such bytes.\n");
    } else {
      send_file(request, *file, result);
    }
  }

  void on_request(evhttp_request* request) {
    evhttp_connection* connection = evhttp_request_get_connection(request);
    const bool is_new = open.insert(connection).second;
    if (is_new) evhttp_connection_set_closecb(connection, on_close, this);
    busy.insert(connection);
    evhttp_request_set_on_complete_cb(request, on_complete, this);
    log(LogLevel::kInfo, "%s %s", evhttp_request_get_command(request) == EVHTTP_REQ_HEAD ? "HEAD" : "GET",
        printable(evhttp_request_get_uri(request), 300).c_str());
    if (is_ending || (is_new && open.size() > options.most_connections)) {
      set(request, "Connection", "close");
      set(request, "Retry-After", std::to_string(kBacklogRetrySeconds));
      send_text(request, 503, "Too many connections; try again.\n");
      return;
    }
    answer(request);
  }

  void end_if_idle() {
    if (is_ending && busy.empty()) event_base_loopbreak(base);
  }
  void on_signal() {
    if (is_ending) {
      event_base_loopbreak(base);
      return;
    }
    is_ending = true;
    evhttp_del_accept_socket(http, listener);
    listener = nullptr;
    const timeval grace{.tv_sec = kGraceSeconds, .tv_usec = 0};
    event_base_loopexit(base, &grace);
    end_if_idle();
  }

  static void on_request(evhttp_request* request, void* self) {
    static_cast<State*>(self)->on_request(request);
  }
  static void on_complete(evhttp_request* request, void* self) {
    auto* state = static_cast<State*>(self);
    state->busy.erase(evhttp_request_get_connection(request));
    state->end_if_idle();
  }
  static void on_close(evhttp_connection* connection, void* self) {
    auto* state = static_cast<State*>(self);
    state->open.erase(connection);
    state->busy.erase(connection);
    state->end_if_idle();
  }
  static void on_signal(evutil_socket_t, short, void* self) { static_cast<State*>(self)->on_signal(); }
};

FileServer::FileServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
FileServer::~FileServer() = default;

Result<std::unique_ptr<FileServer>> FileServer::open(ServeOptions options) {
  auto state = std::make_unique<State>();
  DP_TRY(state->root, served_root(options.folder));
  state->options = std::move(options);
  event_set_log_callback(log_libevent);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is no reason to end
  state->base = event_base_new();
  state->http = state->base ? evhttp_new(state->base) : nullptr;
  if (!state->http) return fail(ErrorKind::kInternal, "libevent could not be started.");
  evhttp_set_max_headers_size(state->http, kMostHeadBytes);
  evhttp_set_max_body_size(state->http, kMostBodyBytes);
  evhttp_set_timeout(state->http, static_cast<int>(state->options.timeout_seconds));
  evhttp_set_allowed_methods(state->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_OPTIONS);
  evhttp_set_gencb(state->http, State::on_request, state.get());
  state->listener =
      evhttp_bind_socket_with_handle(state->http, state->options.host.c_str(), state->options.port);
  if (!state->listener) {
    return fail_errno("listen at",
                      format_text("%s port %u", state->options.host.c_str(), state->options.port));
  }
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  const int socket = evhttp_bound_socket_get_fd(state->listener);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return fail_errno("listen at", state->options.host);
  state->port = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                                    : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  const int numbers[] = {SIGINT, SIGTERM};
  for (int i = 0; i < 2; ++i) {
    state->signals[i] = evsignal_new(state->base, numbers[i], State::on_signal, state.get());
    if (!state->signals[i] || evsignal_add(state->signals[i], nullptr) != 0) {
      return fail(ErrorKind::kInternal, "libevent cannot watch for signals.");
    }
  }
  return std::unique_ptr<FileServer>(new FileServer(std::move(state)));
}

uint16_t FileServer::port() const { return state_->port; }

std::string FileServer::url() const {
  const std::string& host = state_->options.host;
  const bool is_v6 = host.find(':') != std::string::npos;
  return format_text("http://%s%s%s:%u/", is_v6 ? "[" : "", host.c_str(), is_v6 ? "]" : "", state_->port);
}

Result<void> FileServer::run() {
  if (event_base_dispatch(state_->base) < 0) return fail(ErrorKind::kIo, "The server's event loop failed.");
  return {};
}

}  // namespace doppler::store
