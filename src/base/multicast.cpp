#include "base/multicast.h"

#include <cstring>

#include "base/text.h"

namespace doppler {

uint32_t ipv4_number(const Ipv4& address) {
  uint32_t number = 0;
  std::memcpy(&number, address.data(), sizeof number);
  return number;
}

Ipv4 ipv4_of(uint32_t number) {
  Ipv4 address;
  std::memcpy(address.data(), &number, sizeof number);
  return address;
}

bool NetworkInterface::is_near(const Ipv4& other) const {
  return ((ipv4_number(address) ^ ipv4_number(other)) & mask) == 0;
}

std::string ipv4_text(const Ipv4& a) { return format_text("%u.%u.%u.%u", a[0], a[1], a[2], a[3]); }

}  // namespace doppler
