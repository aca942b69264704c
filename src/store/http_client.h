// HTTP requests side by side on one thread, over libcurl's multi interface. A request is one exchange with one
// address: redirects, retries and what the bytes mean are the caller's (remote.h, download.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/curl_library.h"
#include "store/http_headers.h"

namespace doppler::store {

struct ResponseHead {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case
  const std::string* find(std::string_view name) const;     // null: absent; the last one if there are several
};

// Who receives a response; outlives its transfer.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // The status line and all fields. false: enough, the body is not wanted. An error ends the transfer with it.
  virtual Result<bool> on_head(const ResponseHead& head) = 0;
  virtual Result<void> on_body(std::span<const uint8_t> bytes) = 0;
};

struct Request {
  std::string url;
  std::optional<ByteRange> range;
  std::string if_range;         // entity tag or date; empty: none
  std::string bearer;           // access token; empty: none
  bool is_direct = false;       // without a proxy, for a machine nearby
  bool is_public_only = false;  // refused if the host's address is none of the public internet
};

// Why an exchange failed.
struct Failure {
  Error error;
  bool may_pass = false;                      // worth another try: lost connection, stall, timeout
  bool is_refused_connection = false;         // no such host, no listener, no trusted TLS: there is no server
  std::optional<uint64_t> wait_seconds = {};  // what the server asked for (Retry-After)
};

struct Ended {
  Receiver* receiver;
  std::optional<Failure> failure;  // empty: the exchange is complete
};

struct HttpTimes {
  uint32_t connect_seconds = 20;  // until the connection stands, TLS included
  uint32_t stall_seconds = 30;    // without a byte
};

class HttpClient {
 public:
  static Result<std::unique_ptr<HttpClient>> open(HttpTimes times);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  Result<void> start(const Request& request, Receiver& receiver);
  size_t running() const { return exchanges_.size(); }
  // Works until something ended or the time is over.
  Result<std::vector<Ended>> wait(uint32_t milliseconds);
  // Stops all exchanges and does not tell the receivers.
  void stop_all();
  void stop(const Receiver& receiver);

 private:
  struct Exchange;
  HttpClient(const CurlLibrary& curl, HttpTimes times);
  void drop(Exchange* exchange);
  Failure failure_of(const Exchange& exchange, CURLcode code) const;

  const CurlLibrary& curl_;
  HttpTimes times_;
  CURLM* multi_ = nullptr;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
};

}  // namespace doppler::store
