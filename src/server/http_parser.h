// Requests of HTTP/1.0 and 1.1 from bytes that arrive in pieces. Nothing is guessed: what the standard (RFC 9112) calls
// malformed or ambiguous is refused with the status that the client gets. No sockets.
// Read next: http_server.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace doppler::server {

struct HttpLimits {
  size_t head_bytes = 32 << 10;  // request line and fields
  size_t body_bytes = 32 << 20;
  size_t fields = 128;
};

using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "POST"
  std::string path;    // with its %XX decoded: "/v1/models"
  std::string query;   // after "?", unchanged
  HttpFields fields;   // names in lower case
  std::string body;
  bool keeps_alive = true;
  bool is_http_1_0 = false;

  // Empty text: there is none.
  std::string_view field(std::string_view lower_name) const;
};

// The refusal for a client whose bytes are no request.
struct HttpRefusal {
  int status = 400;
  const char* sentence = "";
};

class HttpParser {
 public:
  enum class State : uint8_t { kIdle, kHead, kBody, kDone, kRefused };

  explicit HttpParser(HttpLimits limits = {}) : limits_(limits) {}

  // Takes bytes up to the end of one request; gives how many. Takes none in kDone and kRefused.
  size_t push(std::string_view bytes);
  State state() const { return state_; }
  // True if the client waits for "100 Continue"; told once.
  bool take_expects_continue() { return std::exchange(expects_continue_, false); }
  // In kRefused.
  const HttpRefusal& refusal() const { return refusal_; }
  // In kDone: the request; the parser is ready for the next.
  HttpRequest take();

 private:
  enum class Chunk : uint8_t { kSize, kData, kDataEnd, kTrailer };

  void refuse(int status, const char* sentence);
  void read_head();
  bool read_request_line(std::string_view line);
  bool read_field(std::string_view line);
  void read_framing();
  size_t push_chunked(std::string_view bytes);
  void read_chunk_line();

  HttpLimits limits_;
  State state_ = State::kIdle;
  HttpRefusal refusal_;
  HttpRequest request_;
  std::string head_;   // the bytes of the head so far; in a chunked body those of the line under way
  uint64_t left_ = 0;  // bytes of the body or of its chunk that are to come
  bool is_chunked_ = false;
  bool expects_continue_ = false;
  Chunk chunk_ = Chunk::kSize;
};

// "a%20b" -> "a b". No value: an escape that is none, or a zero byte.
std::optional<std::string> decode_percent(std::string_view text);

}  // namespace doppler::server
