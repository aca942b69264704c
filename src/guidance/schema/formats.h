// The formats of texts that llguidance knows; any other is an annotation.
#pragma once

#include <string_view>

namespace doppler::guidance {

inline bool is_known_format(std::string_view name) {
  for (const std::string_view known :
       {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"}) {
    if (name == known) return true;
  }
  return false;
}

}  // namespace doppler::guidance
