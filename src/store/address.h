// Whether an address of the internet protocol is one of the public internet.
#pragma once

#include <string_view>

namespace doppler::store {

// `ip`: digits, as inet_ntop() writes them: "8.8.8.8", "2001:4860::8888". False: an address of this machine, of a
// private network or of a group, one that carries another address in it, or no address at all. The ranges are those of
// IANA's registries of special-purpose addresses (RFC 6890).
bool is_public_address(std::string_view ip);

}  // namespace doppler::store
