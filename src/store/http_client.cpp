#include "store/http_client.h"

#include <algorithm>

#include "base/own_folders_native.h"
#include "base/text.h"
#include "store/address.h"
#include "store/url.h"

namespace doppler::store {
namespace {

constexpr size_t kHttpClientMostHeadBytes = 256 << 10;  // of all header fields together
constexpr long kReceiveBuffer = 512 << 10;              // libcurl's largest
constexpr const char* kUserAgent = "doppler/" DOPPLER_VERSION;

}  // namespace

const std::string* ResponseHead::find(std::string_view name) const {
  const std::string* found = nullptr;
  for (const auto& [key, value] : fields) {
    if (key == name) found = &value;
  }
  return found;
}

struct HttpClient::Exchange {
  const CurlLibrary& curl;
  Receiver* receiver;
  std::string url;
  CURL* easy = nullptr;
  curl_slist* sent_fields = nullptr;
  ResponseHead head;
  size_t head_bytes = 0;
  uint64_t body_bytes = 0;
  bool has_enough = false;
  std::optional<Error> refused;  // what the receiver said
  char detail[CURL_ERROR_SIZE] = "";

  Exchange(const CurlLibrary& library, Receiver& to, std::string address)
      : curl(library), receiver(&to), url(std::move(address)) {}
  ~Exchange() {
    if (easy) curl.easy_cleanup(easy);
    curl.slist_free_all(sent_fields);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool add_field(const std::string& field) {
    curl_slist* longer = curl.slist_append(sent_fields, field.c_str());
    if (longer) sent_fields = longer;
    return longer != nullptr;
  }

  // One line of the head. Returning less than the size ends the transfer.
  size_t take_line(std::string_view line) {
    head_bytes += line.size();
    if (head_bytes > kHttpClientMostHeadBytes) {
      refused = Error(ErrorKind::kIo, format_text("%s answers with more than %zu bytes of header fields.",
                                                  shown_url(url).c_str(), kHttpClientMostHeadBytes));
      return 0;
    }
    const std::string_view text = trim(line);
    if (text.starts_with("HTTP/")) {  // also of interim answers (1xx), which the last one replaces
      head = {};
      const auto status = parse_decimal(text.substr(std::min(text.size(), text.find(' ') + 1)).substr(0, 3));
      head.status = status ? static_cast<int>(*status) : 0;
    } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
      head.fields.emplace_back(ascii_lower(trim(text.substr(0, colon))), trim(text.substr(colon + 1)));
    } else if (text.empty() && head.status >= 200) {
      auto wanted = receiver->on_head(head);
      if (!wanted) {
        refused = std::move(wanted).error();
        return 0;
      }
      has_enough = !*wanted;
      if (has_enough) return 0;
    }
    return line.size();
  }

  size_t take_body(std::span<const uint8_t> bytes) {
    body_bytes += bytes.size();
    auto taken = receiver->on_body(bytes);
    if (taken) return bytes.size();
    refused = std::move(taken).error();
    return 0;
  }

  // After the connection stands, before anything is sent.
  static int on_connected(void* self, char* ip, char*, int, int) {
    if (is_public_address(ip)) return CURL_PREREQFUNC_OK;
    auto& exchange = *static_cast<Exchange*>(self);
    exchange.refused = Error(ErrorKind::kInvalidInput,
                             format_text("%s has the address %s, which is none of the public internet.",
                                         shown_url(exchange.url).c_str(), printable(ip).c_str()));
    return CURL_PREREQFUNC_ABORT;
  }

  static size_t on_line(char* data, size_t, size_t count, void* self) {
    return static_cast<Exchange*>(self)->take_line({data, count});
  }
  static size_t on_bytes(char* data, size_t, size_t count, void* self) {
    return static_cast<Exchange*>(self)->take_body({reinterpret_cast<const uint8_t*>(data), count});
  }
};

HttpClient::HttpClient(const CurlLibrary& curl, HttpTimes times)
    : curl_(curl), times_(times), multi_(curl.multi_init()) {}

HttpClient::~HttpClient() {
  stop_all();
  if (multi_) curl_.multi_cleanup(multi_);
}

Result<std::unique_ptr<HttpClient>> HttpClient::open(HttpTimes times) {
  DP_TRY(const CurlLibrary* curl, CurlLibrary::load());
  std::unique_ptr<HttpClient> client(new HttpClient(*curl, times));
  if (!client->multi_) return fail(ErrorKind::kInternal, "libcurl could not be started.");
  return client;
}

Result<void> HttpClient::start(const Request& request, Receiver& receiver) {
  auto exchange = std::make_unique<Exchange>(curl_, receiver, request.url);
  exchange->easy = curl_.easy_init();
  bool ok = exchange->easy != nullptr;
  const auto set = [&](CURLoption option, auto value) {
    ok = ok && curl_.easy_setopt(exchange->easy, option, value) == CURLE_OK;
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, kUserAgent);
  // Several connections: HTTP/2 would put all ranges on one.
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_BUFFERSIZE, kReceiveBuffer);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(times_.connect_seconds));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(times_.stall_seconds));
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(exchange->detail));
  set(CURLOPT_HEADERFUNCTION, &Exchange::on_line);
  set(CURLOPT_HEADERDATA, exchange.get());
  set(CURLOPT_WRITEFUNCTION, &Exchange::on_bytes);
  set(CURLOPT_WRITEDATA, exchange.get());
  set(CURLOPT_PRIVATE, exchange.get());
  // OpenSSL's own variable for another list of trusted certificates, which libcurl does not look at.
  if (const std::string file = environment_variable("SSL_CERT_FILE"); !file.empty())
    set(CURLOPT_CAINFO, file.c_str());
  if (request.is_direct) set(CURLOPT_PROXY, "");
  if (request.is_public_only) {
    set(CURLOPT_PREREQFUNCTION, &Exchange::on_connected);
    set(CURLOPT_PREREQDATA, exchange.get());
  }
  const std::string range =
      request.range ? format_text("%llu-%llu", static_cast<unsigned long long>(request.range->first),
                                  static_cast<unsigned long long>(request.range->last))
                    : "";
  if (request.range) set(CURLOPT_RANGE, range.c_str());
  ok = ok && exchange->add_field("Accept-Encoding: identity");
  if (!request.if_range.empty()) ok = ok && exchange->add_field("If-Range: " + request.if_range);
  if (!request.bearer.empty()) ok = ok && exchange->add_field("Authorization: Bearer " + request.bearer);
  if (ok) set(CURLOPT_HTTPHEADER, exchange->sent_fields);
  if (!ok || curl_.multi_add_handle(multi_, exchange->easy) != CURLM_OK) {
    return fail(ErrorKind::kInternal, "libcurl refuses a request for %s.", shown_url(request.url).c_str());
  }
  exchanges_.push_back(std::move(exchange));
  return {};
}

Result<std::vector<Ended>> HttpClient::wait(uint32_t milliseconds) {
  int running = 0;
  CURLMcode code = curl_.multi_perform(multi_, &running);
  std::vector<Ended> ended;
  const auto collect = [&] {
    int left = 0;
    while (CURLMsg* message = curl_.multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Exchange* exchange = nullptr;
      const CURLcode result = message->data.result;
      curl_.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
      Ended end{.receiver = exchange->receiver, .failure = {}};
      if (result != CURLE_OK && !exchange->has_enough) end.failure = failure_of(*exchange, result);
      drop(exchange);
      ended.push_back(std::move(end));
    }
  };
  collect();
  if (code == CURLM_OK && ended.empty()) {
    code = curl_.multi_poll(multi_, nullptr, 0, static_cast<int>(milliseconds), nullptr);
    if (code == CURLM_OK) code = curl_.multi_perform(multi_, &running);
    collect();
  }
  if (code != CURLM_OK) {
    return fail(ErrorKind::kInternal, "libcurl failed: %s.", curl_.multi_strerror(code));
  }
  return ended;
}

void HttpClient::stop_all() {
  while (!exchanges_.empty()) drop(exchanges_.back().get());
}

void HttpClient::stop(const Receiver& receiver) {
  const auto it = std::ranges::find_if(exchanges_, [&](const auto& e) { return e->receiver == &receiver; });
  if (it != exchanges_.end()) drop(it->get());
}

void HttpClient::drop(Exchange* exchange) {
  curl_.multi_remove_handle(multi_, exchange->easy);
  std::erase_if(exchanges_, [&](const auto& owned) { return owned.get() == exchange; });
}

Failure HttpClient::failure_of(const Exchange& exchange, CURLcode code) const {
  if (exchange.refused) return {.error = *exchange.refused};
  const std::string address = shown_url(exchange.url);
  const auto url = parse_url(exchange.url);
  const std::string host = url ? printable(url->host) : address;
  const auto make = [](std::string sentence) { return Error(ErrorKind::kIo, std::move(sentence)); };
  const auto bytes = static_cast<unsigned long long>(exchange.body_bytes);
  const char* detail = *exchange.detail ? exchange.detail : curl_.easy_strerror(code);
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return {.error = make(format_text("The host %s is not known (no address was found).", host.c_str())),
              .may_pass = true,
              .is_refused_connection = true};
    case CURLE_COULDNT_CONNECT:
      return {.error = make(format_text("Nothing answers at %s: %s.", host.c_str(), detail)),
              .may_pass = true,
              .is_refused_connection = true};
    case CURLE_OPERATION_TIMEDOUT:
      if (exchange.head.status == 0 && exchange.body_bytes == 0) {
        return {.error = make(format_text("%s did not answer in time (%u s to connect, %u s without a byte).",
                                          host.c_str(), times_.connect_seconds, times_.stall_seconds)),
                .may_pass = true};
      }
      return {.error = make(format_text("%s stalled: no byte for %u s after %llu.", address.c_str(),
                                        times_.stall_seconds, bytes)),
              .may_pass = true};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
      return {.error = make(
                  format_text("The TLS certificate of %s is not trusted: %s (SSL_CERT_FILE names another "
                              "list of certificates).",
                              host.c_str(), detail)),
              .is_refused_connection = true};
    case CURLE_SSL_CONNECT_ERROR:
      return {.error = make(format_text("TLS with %s failed: %s.", host.c_str(), detail)),
              .may_pass = true,
              .is_refused_connection = true};
    case CURLE_PARTIAL_FILE:
      return {.error = make(format_text("%s ended too early, after %llu bytes of this answer.",
                                        address.c_str(), bytes)),
              .may_pass = true};
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
      return {.error = make(format_text("The connection to %s was lost after %llu bytes of this answer.",
                                        host.c_str(), bytes)),
              .may_pass = true};
    default:
      return {.error = make(format_text("Fetching %s failed: %s.", address.c_str(), detail))};
  }
}

}  // namespace doppler::store
