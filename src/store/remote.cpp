#include "store/remote.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "store/url.h"

namespace doppler::store {
namespace {

constexpr size_t kMostRedirects = 10;

// Takes redirects and bad statuses away before the answer that counts; Last gets that one.
template <class Last>
class Hop : public Receiver {
 public:
  Hop(Last& last, const std::string& url, bool had_token) : last_(last), url_(url), had_token_(had_token) {}

  Result<bool> on_head(const ResponseHead& head) override {
    last_.see(head);
    const std::string* location = head.find("location");
    if (head.status >= 300 && head.status < 400 && head.status != 304 && location) {
      location_ = *location;
      return false;
    }
    if (head.status < 200 || head.status >= 300) {
      failure_ = failure_of_status(head, url_, had_token_);
      return false;
    }
    return last_.on_head(head);
  }
  Result<void> on_body(std::span<const uint8_t> bytes) override { return last_.on_body(bytes); }

  std::optional<std::string> location_;
  std::optional<Failure> failure_;

 private:
  Last& last_;
  const std::string& url_;
  bool had_token_;
};

Result<void> check_content(const ResponseHead& head, const std::string& url) {
  const std::string* encoding = head.find("content-encoding");
  if (encoding && *encoding != "identity" && !encoding->empty()) {
    return fail(ErrorKind::kIo, "The server of %s packs the file (%s) although it was asked not to.",
                shown_url(url).c_str(), printable(*encoding).c_str());
  }
  const std::string* type = head.find("content-type");
  if (type && type->starts_with("text/html")) {
    return fail(ErrorKind::kIo, "%s is a web page, not a model file.", shown_url(url).c_str());
  }
  return {};
}

// The answer to "bytes=0-0".
struct Probe {
  const std::string& url;
  Remote remote;

  // Sees every answer on the way: the first server knows the file's hash, the last one only its bytes.
  void see(const ResponseHead& head) {
    const std::string* tag = head.find("x-linked-etag");
    if (!tag || remote.sha256) return;
    std::string_view text = trim(*tag);
    if (text.size() == 66) text = text.substr(1, 64);  // within quotes
    remote.sha256 = sha256_from_hex(text);
  }
  Result<bool> on_head(const ResponseHead& head) {
    DP_CHECK(check_content(head, url));
    if (head.status == 206) {
      const std::string* field = head.find("content-range");
      const auto range = field ? parse_content_range(*field) : std::nullopt;
      if (!range || range->range != ByteRange{0, 0}) {
        return fail(ErrorKind::kIo,
                    "%s was asked for its first byte and answers with another range (\"%s\").",
                    shown_url(url).c_str(), printable(field ? *field : "").c_str());
      }
      remote.takes_ranges = range->total.has_value();
      remote.bytes = range->total;
    } else if (const std::string* length = head.find("content-length")) {
      remote.bytes = parse_decimal(*length);
    }
    if (const std::string* tag = head.find("etag")) remote.validator = strong_etag(*tag).value_or("");
    const std::string* modified = head.find("last-modified");
    if (remote.validator.empty() && modified && parse_http_date(*modified)) remote.validator = *modified;
    return false;
  }
  Result<void> on_body(std::span<const uint8_t>) { return {}; }
};

struct Text {
  const std::string& url;
  uint64_t most_bytes;
  std::string text = {};

  void see(const ResponseHead&) { text.clear(); }
  Result<bool> on_head(const ResponseHead& head) {
    const std::string* encoding = head.find("content-encoding");
    if (!encoding || *encoding == "identity") return true;
    return fail(ErrorKind::kIo, "The server of %s packs its answer (%s) although it was asked not to.",
                shown_url(url).c_str(), printable(*encoding).c_str());
  }
  Result<void> on_body(std::span<const uint8_t> bytes) {
    if (bytes.size() > most_bytes - text.size()) {
      return fail(ErrorKind::kIo, "%s is longer than %s, which such a text never is.", shown_url(url).c_str(),
                  format_bytes(most_bytes).c_str());
    }
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
};

}  // namespace

std::string Web::bearer_for(const std::string& url) const {
  if (options_.token.empty()) return {};
  const auto parsed = parse_url(url);
  return parsed && parsed->origin() == options_.token_origin ? options_.token : "";
}

template <class Last>
Result<void> Web::fetch(Request& request, Last& last) {
  if (!client_) {
    DP_TRY(client_, HttpClient::open(options_.times));
  }
  Retries retries(options_.retries);
  std::vector<std::string> seen = {request.url};
  for (;;) {
    request.bearer = bearer_for(request.url);
    Hop<Last> hop(last, request.url, !request.bearer.empty());
    DP_CHECK(client_->start(request, hop));
    std::optional<Failure> failure;
    for (bool ended = false; !ended;) {
      if (auto go_on = check_not_stopped(options_.stop); !go_on) {
        client_->stop_all();
        return go_on;
      }
      auto some = client_->wait(100);
      if (!some) {
        client_->stop_all();  // the receiver is about to go
        return forward(std::move(some).error());
      }
      for (Ended& end : *some) {
        ended = true;
        failure = std::move(end.failure);
      }
    }
    if (hop.failure_) failure = std::move(hop.failure_);
    if (failure) {
      if (failure->is_refused_connection) return forward(failure->error);
      DP_TRY(const uint64_t milliseconds, retries.next(*failure));
      DP_CHECK(pause(milliseconds, options_.stop));
      continue;
    }
    if (!hop.location_) return {};
    DP_TRY(std::string next, follow(request.url, *hop.location_));
    if (std::ranges::find(seen, next) != seen.end()) {
      return fail(ErrorKind::kIo, "%s redirects in a circle, back to %s.", shown_url(seen.front()).c_str(),
                  shown_url(next).c_str());
    }
    if (seen.size() > kMostRedirects) {
      return fail(ErrorKind::kIo, "%s redirects more than %zu times.", shown_url(seen.front()).c_str(),
                  kMostRedirects);
    }
    seen.push_back(next);
    request.url = std::move(next);
  }
}

Result<Remote> Web::probe(const std::string& url) {
  DP_CHECK(parse_url(url));
  Request request{.url = url, .range = ByteRange{0, 0}, .if_range = {}, .bearer = {}};
  Probe probe{.url = request.url, .remote = {}};
  DP_CHECK(fetch(request, probe));
  probe.remote.url = request.url;
  if (probe.remote.bytes == 0) {
    return fail(ErrorKind::kIo, "%s is empty.", shown_url(url).c_str());
  }
  return std::move(probe.remote);
}

Result<std::string> Web::text(const std::string& url, uint64_t most_bytes) {
  DP_CHECK(parse_url(url));
  Request request{.url = url, .range = {}, .if_range = {}, .bearer = {}};
  Text text{.url = request.url, .most_bytes = most_bytes};
  DP_CHECK(fetch(request, text));
  return std::move(text.text);
}

}  // namespace doppler::store
