// Who may ask: API keys, web pages of other origins, names that lead a browser here by a trick.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/http_parser.h"

namespace doppler::server {

struct GateOptions {
  std::vector<std::string> api_keys;  // none: everyone may
  std::string origin;                 // whose pages may ask; "*": all; empty: none
  bool is_loopback = true;            // it listens only at this machine
  bool is_insecure = false;           // other machines may ask without a key
};

// True for an address that only this machine can reach.
bool is_loopback_host(std::string_view host);
// Error: other machines could ask without a key.
Result<void> check_gate(const GateOptions& options, const std::string& host);

struct GateRefusal {
  int status = 401;
  std::string sentence;
};
// Nothing: the request may be answered. `needs_key`: not where the state is asked for.
std::optional<GateRefusal> refusal_of(const GateOptions& options, const HttpRequest& request, bool needs_key);
// The fields about CORS in an answer to a browser; empty without CORS.
HttpFields cors_fields(const GateOptions& options, const HttpRequest& request);

}  // namespace doppler::server
