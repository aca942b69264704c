#include "store/named_host_file.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "store/address.h"
#include "store/http_client.h"
#include "store/url.h"

namespace doppler::store {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostHops = 3;
constexpr uint32_t kStep = 100;  // milliseconds

class WholeFile final : public Receiver {
 public:
  explicit WholeFile(uint64_t most_bytes) : most_bytes_(most_bytes) {}
  Result<bool> on_head(const ResponseHead& head) override {
    head_ = head;
    return head.status == 200;
  }
  Result<void> on_body(std::span<const uint8_t> bytes) override {
    if (body_.size() + bytes.size() > most_bytes_) {
      return fail(ErrorKind::kInvalidInput, "The file is longer than %s.", format_bytes(most_bytes_).c_str());
    }
    body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  const ResponseHead& head() const { return head_; }
  std::string take_body() { return std::move(body_); }

 private:
  const uint64_t most_bytes_;
  ResponseHead head_;
  std::string body_;
};

std::string joined(const std::vector<std::string>& hosts) {
  std::string out;
  for (const std::string& host : hosts) out += (out.empty() ? "" : ", ") + host;
  return out;
}

// The host without a port, and without the brackets of version 6.
std::string_view name_of(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

// Named by the operator as what it is: an address, or this machine.
bool is_literal(std::string_view host) {
  const std::string_view name = name_of(host);
  const bool is_v4 = !name.empty() && name.find_first_not_of("0123456789.") == name.npos;
  return name == "localhost" || is_v4 || name.find(':') != name.npos;
}

Result<Url> check_host(const std::string& url, const NamedHosts& allowed) {
  DP_TRY(Url out, parse_url(url));
  const bool is_named = std::ranges::any_of(
      allowed.hosts, [&](const std::string& host) { return ascii_lower(host) == out.host; });
  if (is_named) return out;
  return fail(ErrorKind::kInvalidInput, "The host %s is not allowed; allowed are %s.",
              printable(out.host).c_str(), joined(allowed.hosts).c_str());
}

}  // namespace

Result<std::string> fetch_from_named_host(const std::string& url, const NamedHosts& allowed) {
  const auto deadline = Clock::now() + std::chrono::seconds(allowed.most_seconds);
  std::string at = url;
  for (int redirect = 0; redirect <= kMostHops; ++redirect) {
    DP_TRY(const Url parsed, check_host(at, allowed));
    WholeFile file(allowed.most_bytes);
    // After the file: a transfer that is given up ends before its receiver does.
    DP_TRY(
        const std::unique_ptr<HttpClient> client,
        HttpClient::open({.connect_seconds = allowed.most_seconds, .stall_seconds = allowed.most_seconds}));
    DP_CHECK(client->start(
        {.url = at, .range = {}, .is_direct = true, .is_public_only = !is_literal(parsed.host)}, file));
    while (client->running() > 0) {
      DP_TRY(const std::vector<Ended> ended, client->wait(kStep));
      if (!ended.empty() && ended[0].failure) return forward(Error(ended[0].failure->error));
      if (client->running() > 0 && Clock::now() > deadline) {
        return fail(ErrorKind::kIo, "%s did not come within %u s.", shown_url(at).c_str(),
                    allowed.most_seconds);
      }
    }
    const int status = file.head().status;
    if (status == 200) return file.take_body();
    const std::string* location = file.head().find("location");
    if (status < 300 || status > 399 || !location)
      return fail(ErrorKind::kIo, "%s answers with status %d.", shown_url(at).c_str(), status);
    DP_TRY(at, follow(at, *location));
  }
  return fail(ErrorKind::kIo, "%s leads on more than %d times.", shown_url(url).c_str(), kMostHops);
}

}  // namespace doppler::store
