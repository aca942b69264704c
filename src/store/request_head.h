// The head of an HTTP/1 request to the file server: its first line and the fields that an answer depends on. Text from
// a stranger. No sockets; file_server.cpp answers it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace doppler::store {

struct RequestHead {
  std::string method;
  std::string path;  // of the target, escapes as they came, without the query
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case
  bool keeps_alive = true;
  bool has_body = false;

  std::string_view field(std::string_view lower_name) const;  // empty: absent
};

// `text`: up to and with the empty line. Nothing: it is no request of HTTP/1.0 or 1.1.
std::optional<RequestHead> parse_request_head(std::string_view text);

}  // namespace doppler::store
