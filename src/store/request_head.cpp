#include "store/request_head.h"

#include <algorithm>

#include "base/text.h"

namespace doppler::store {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

bool is_token_char(char c) {  // RFC 9110, 5.6.2
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool is_token(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_token_char); }

// "/a?b" and "http://host/a?b" -> "/a"; empty: neither.
std::string_view path_of(std::string_view target) {
  if (const size_t scheme = target.find("://");
      !target.starts_with('/') && scheme != std::string_view::npos) {
    target.remove_prefix(scheme + 3);
    const size_t path = target.find_first_of("/?");
    if (path == std::string_view::npos || target[path] == '?') return "/";
    target.remove_prefix(path);
  }
  return target.starts_with('/') ? target.substr(0, target.find_first_of("?#")) : std::string_view();
}

}  // namespace

std::string_view RequestHead::field(std::string_view lower_name) const {
  const auto it = std::ranges::find(fields, lower_name, &std::pair<std::string, std::string>::first);
  return it == fields.end() ? std::string_view() : it->second;
}

std::optional<RequestHead> parse_request_head(std::string_view text) {
  RequestHead head;
  bool is_first = true, is_1_0 = false;
  while (!text.empty()) {
    const size_t end = text.find(kLineEnd);
    if (end == std::string_view::npos) return {};
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + kLineEnd.size());
    if (line.find('\0') != std::string_view::npos) return {};
    if (is_first) {
      const size_t first = line.find(' '), last = line.rfind(' ');
      if (first == std::string_view::npos || first == last) return {};
      head.method = line.substr(0, first);
      const std::string_view target = line.substr(first + 1, last - first - 1);
      const std::string_view version = line.substr(last + 1);
      is_1_0 = version == "HTTP/1.0";
      head.path = target == "*" && head.method == "OPTIONS" ? "/" : path_of(target);
      if (!is_token(head.method) || head.path.empty() || target.find(' ') != std::string_view::npos)
        return {};
      if (!is_1_0 && version != "HTTP/1.1") return {};
      is_first = false;
      continue;
    }
    if (line.empty()) break;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return {};
    head.fields.emplace_back(ascii_lower(line.substr(0, colon)), trim(line.substr(colon + 1)));
  }
  if (is_first) return {};
  const std::string connection = ascii_lower(head.field("connection"));
  head.keeps_alive = is_1_0 ? connection == "keep-alive" : connection != "close";
  const std::string_view length = head.field("content-length");
  head.has_body = (!length.empty() && length != "0") || !head.field("transfer-encoding").empty();
  return head;
}

}  // namespace doppler::store
