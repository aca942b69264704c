// A small file at an address that a stranger gave, from a host that the operator named. The stranger must not reach
// what only this machine can reach, so redirects stay at that host, and a name must not lead to a private address.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace doppler::store {

struct NamedHosts {
  std::vector<std::string> hosts;  // "example.org", "example.org:8443"; without a port: that of the scheme
  uint64_t most_bytes = 0;
  uint32_t most_seconds = 0;
};

// A host that is named by its own private address, or as "localhost", may have that address.
// Errors: no address of http or https, another host, a redirect to one, a private address, a status other than 200,
// more bytes or seconds than allowed, the network's.
Result<std::string> fetch_from_named_host(const std::string& url, const NamedHosts& allowed);

}  // namespace doppler::store
