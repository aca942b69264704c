#include "server/gate.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"

namespace doppler::server {
namespace {

char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// In a time that says nothing of where they differ: digests of equal length are compared to their ends.
bool equal_keys(const std::string& a, std::string_view b) {
  const Sha256 x = sha256(text_bytes(a)), y = sha256(text_bytes(b));
  unsigned difference = 0;
  for (size_t i = 0; i < x.size(); ++i)
    difference |= static_cast<unsigned>(x[i]) ^ static_cast<unsigned>(y[i]);
  return difference == 0;
}

bool has_key(const std::vector<std::string>& keys, const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";
  std::string_view given = request.field("x-api-key");
  const std::string_view authorization = request.field("authorization");
  const bool is_bearer = authorization.size() > kBearer.size() &&
                         std::ranges::equal(authorization.substr(0, kBearer.size()), kBearer,
                                            [](char a, char b) { return lower_letter(a) == b; });
  if (is_bearer) given = trim(authorization.substr(kBearer.size()));
  bool found = false;
  for (const std::string& key : keys) found |= equal_keys(key, given);
  return found;
}

bool equal_names(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower_letter(x) == lower_letter(y); });
}

// The host of a Host field, without its port.
std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_allowed_origin(const GateOptions& options, const HttpRequest& request) {
  const std::string_view origin = request.field("origin");
  if (origin.empty() || options.origin == "*" || equal_names(origin, options.origin)) return true;
  const size_t scheme = origin.find("://");
  return scheme != std::string_view::npos &&
         equal_names(origin.substr(scheme + 3), request.field("host"));  // a page of ours
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  return equal_names(host, "localhost") || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

Result<void> check_gate(const GateOptions& options, const std::string& host) {
  if (options.is_loopback || options.is_insecure || !options.api_keys.empty()) return {};
  return fail(ErrorKind::kInvalidInput,
              "Other machines can reach %s: give a key (--api-key, --api-key-file), or say that everyone may "
              "(--insecure).",
              printable(host).c_str());
}

std::optional<GateRefusal> refusal_of(const GateOptions& options, const HttpRequest& request,
                                      bool needs_key) {
  if (!is_allowed_origin(options, request)) {
    return GateRefusal{
        403, "Web pages of " + printable(request.field("origin")) + " may not ask here (--origin)."};
  }
  // A page whose name was made to lead here after it was loaded would pass for one of ours.
  const std::string_view host = host_name(request.field("host"));
  if (options.api_keys.empty() && options.is_loopback && !host.empty() && !is_loopback_host(host)) {
    return GateRefusal{403,
                       "This server answers only to this machine's name, not to " + printable(host) + "."};
  }
  if (needs_key && !options.api_keys.empty() && !has_key(options.api_keys, request)) {
    return GateRefusal{401, "The API key is missing or wrong."};
  }
  return std::nullopt;
}

HttpFields cors_fields(const GateOptions& options, const HttpRequest& request) {
  if (options.origin.empty()) return {};
  HttpFields out = {{"Access-Control-Allow-Origin", options.origin},
                    {"Access-Control-Expose-Headers", "X-Request-Id"}};
  if (options.origin != "*") out.emplace_back("Vary", "Origin");
  if (request.method == "OPTIONS") {
    out.emplace_back("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    out.emplace_back("Access-Control-Allow-Headers", "*, Authorization");
    out.emplace_back("Access-Control-Max-Age", "86400");
  }
  return out;
}

}  // namespace doppler::server
