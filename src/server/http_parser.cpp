#include "server/http_parser.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace doppler::server {
namespace {

constexpr size_t kMostChunkLineBytes = 256;  // a size, and extensions that no client sends
constexpr std::string_view kHeadEnd = "\r\n\r\n";

bool is_token(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token_text(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_token); }

bool lists(std::string_view list, std::string_view word) {
  for (const std::string& item : split(list, ',')) {
    if (ascii_lower(trim(item)) == word) return true;
  }
  return false;
}

std::optional<uint64_t> parse_whole(std::string_view text, int base) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc() || at != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> decode_percent(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto value = parse_whole(text.substr(i + 1, 2), 16);
    if (i + 2 >= text.size() || !value || *value == 0) return std::nullopt;
    out += static_cast<char>(*value);
    i += 2;
  }
  return out;
}

std::string_view HttpRequest::field(std::string_view lower_name) const {
  for (const auto& [name, value] : fields) {
    if (name == lower_name) return value;
  }
  return {};
}

void HttpParser::refuse(int status, const char* sentence) {
  state_ = State::kRefused;
  refusal_ = {.status = status, .sentence = sentence};
}

size_t HttpParser::push(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && state_ != State::kDone && state_ != State::kRefused) {
    const std::string_view rest = bytes.substr(taken);
    if (state_ == State::kBody) {
      if (is_chunked_) {
        taken += push_chunked(rest);
        continue;
      }
      const size_t count = std::min<uint64_t>(left_, rest.size());
      request_.body += rest.substr(0, count);
      left_ -= count;
      taken += count;
      if (left_ == 0) state_ = State::kDone;
      continue;
    }
    if (state_ == State::kIdle) {
      // Empty lines in front of a request are allowed.
      if (rest[0] == '\r' || rest[0] == '\n') {
        ++taken;
        continue;
      }
      state_ = State::kHead;
    }
    const size_t searched = head_.size() < kHeadEnd.size() ? 0 : head_.size() - kHeadEnd.size() + 1;
    const size_t before = head_.size();
    head_ += rest.substr(0, limits_.head_bytes + 1 - std::min(before, limits_.head_bytes));
    const size_t end = head_.find(kHeadEnd, searched);
    if (end == std::string::npos) {
      taken += head_.size() - before;
      if (head_.size() > limits_.head_bytes) refuse(431, "The request's header fields are too long.");
      continue;
    }
    taken += end + kHeadEnd.size() - before;
    head_.resize(end);
    read_head();
    head_.clear();
  }
  return taken;
}

void HttpParser::read_head() {
  std::string_view rest = head_;
  const auto next_line = [&rest] {
    const size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 2);
    return line;
  };
  if (!read_request_line(next_line())) return;
  while (!rest.empty()) {
    if (!read_field(next_line())) return;
  }
  read_framing();
}

bool HttpParser::read_request_line(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || !is_token_text(line.substr(0, first))) {
    refuse(400, "The request line is malformed.");
    return false;
  }
  const std::string_view version = line.substr(second + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    refuse(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
    return false;
  }
  request_.is_http_1_0 = version == "HTTP/1.0";
  request_.method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, second - first - 1);
  // The absolute form, which proxies get.
  if (target.starts_with("http://") || target.starts_with("https://")) {
    const size_t slash = target.find('/', target.find("//") + 2);
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  const size_t question = target.find('?');
  const auto path = decode_percent(target.substr(0, question));
  if (!path || !(path->starts_with('/') || target == "*")) {
    refuse(400, "The request's target is malformed.");
    return false;
  }
  request_.path = *path;
  if (question != std::string_view::npos) request_.query = target.substr(question + 1);
  return true;
}

bool HttpParser::read_field(std::string_view line) {
  const size_t colon = line.find(':');
  const bool has_control =
      std::ranges::any_of(line, [](char c) { return (c >= 0 && c < 32 && c != '\t') || c == 127; });
  // A line that begins with a space would continue the one before (obsolete, and read in different ways).
  if (colon == std::string_view::npos || !is_token_text(line.substr(0, colon)) || has_control) {
    refuse(400, "A header field is malformed.");
    return false;
  }
  if (request_.fields.size() >= limits_.fields) {
    refuse(431, "The request has too many header fields.");
    return false;
  }
  request_.fields.emplace_back(ascii_lower(line.substr(0, colon)), std::string(trim(line.substr(colon + 1))));
  return true;
}

// Reads the length of the body.
void HttpParser::read_framing() {
  const auto count = [this](std::string_view name) {
    return std::ranges::count(request_.fields, name,
                              [](const auto& field) { return std::string_view(field.first); });
  };
  const std::string_view encoding = request_.field("transfer-encoding");
  const std::string_view length = request_.field("content-length");
  const std::string_view connection = request_.field("connection");
  request_.keeps_alive = request_.is_http_1_0 ? lists(connection, "keep-alive") : !lists(connection, "close");
  if (count("content-length") > 1 || count("transfer-encoding") > 1 || count("host") > 1 ||
      (!length.empty() && !encoding.empty())) {
    return refuse(400, "The length of the body is said in two ways.");
  }
  if (!request_.field("content-encoding").empty() && request_.field("content-encoding") != "identity") {
    return refuse(415, "A compressed body is not read.");
  }
  state_ = State::kDone;
  if (!encoding.empty()) {
    if (ascii_lower(encoding) != "chunked" || request_.is_http_1_0) {
      return refuse(501, "The only known transfer encoding is chunked.");
    }
    is_chunked_ = true;
    chunk_ = Chunk::kSize;
    state_ = State::kBody;
  } else if (count("content-length") > 0) {
    const auto bytes = parse_whole(length, 10);
    if (!bytes) return refuse(400, "The content length is no number.");
    if (*bytes > limits_.body_bytes) return refuse(413, "The body is longer than is allowed here.");
    left_ = *bytes;
    if (left_ > 0) state_ = State::kBody;
  }
  expects_continue_ = state_ == State::kBody && lists(request_.field("expect"), "100-continue");
}

size_t HttpParser::push_chunked(std::string_view bytes) {
  if (chunk_ == Chunk::kData) {
    const size_t count = std::min<uint64_t>(left_, bytes.size());
    request_.body += bytes.substr(0, count);
    left_ -= count;
    if (left_ == 0) chunk_ = Chunk::kDataEnd;
    return count;
  }
  head_ += bytes[0];
  if (bytes[0] == '\n') {
    if (!head_.ends_with("\r\n")) {
      refuse(400, "A chunk of the body is malformed.");
      return 1;
    }
    head_.resize(head_.size() - 2);
    read_chunk_line();
    head_.clear();
  } else if (head_.size() > kMostChunkLineBytes) {
    refuse(400, "A chunk of the body is malformed.");
  }
  return 1;
}

void HttpParser::read_chunk_line() {
  if (chunk_ == Chunk::kDataEnd) {
    if (!head_.empty()) return refuse(400, "A chunk of the body is malformed.");
    chunk_ = Chunk::kSize;
  } else if (chunk_ == Chunk::kTrailer) {
    if (head_.empty()) state_ = State::kDone;  // fields after the body are not read
  } else {
    const auto bytes = parse_whole(trim(std::string_view(head_).substr(0, head_.find(';'))), 16);
    if (!bytes) return refuse(400, "A chunk of the body is malformed.");
    if (*bytes > limits_.body_bytes - request_.body.size()) {
      return refuse(413, "The body is longer than is allowed here.");
    }
    left_ = *bytes;
    chunk_ = left_ == 0 ? Chunk::kTrailer : Chunk::kData;
  }
}

HttpRequest HttpParser::take() {
  HttpRequest out = std::move(request_);
  *this = HttpParser(limits_);
  return out;
}

}  // namespace doppler::server
