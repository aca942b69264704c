#include "store/address.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "base/text.h"

namespace doppler::store {
namespace {

struct Range {
  uint32_t first;
  uint32_t bits;  // that count
};
constexpr uint32_t address(uint32_t a, uint32_t b, uint32_t c) { return a << 24 | b << 16 | c << 8; }
constexpr Range kNotPublic[] = {
    {address(0, 0, 0), 8},      {address(10, 0, 0), 8},     {address(100, 64, 0), 10},
    {address(127, 0, 0), 8},    {address(169, 254, 0), 16}, {address(172, 16, 0), 12},
    {address(192, 0, 0), 24},   {address(192, 0, 2), 24},   {address(192, 88, 99), 24},
    {address(192, 168, 0), 16}, {address(198, 18, 0), 15},  {address(198, 51, 100), 24},
    {address(203, 0, 113), 24}, {address(224, 0, 0), 3},
};

std::optional<uint32_t> number_of(std::string_view text, int base, uint32_t most) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value > most)
    return std::nullopt;
  return value;
}

std::optional<uint32_t> read_v4(std::string_view ip) {
  const std::vector<std::string> parts = split(ip, '.');
  if (parts.size() != 4) return std::nullopt;
  uint32_t out = 0;
  for (const std::string& part : parts) {
    const auto byte = number_of(part, 10, 255);
    if (!byte) return std::nullopt;
    out = out << 8 | *byte;
  }
  return out;
}

}  // namespace

bool is_public_address(std::string_view ip) {
  if (ip.find(':') == ip.npos) {
    const auto v4 = read_v4(ip);
    if (!v4) return false;
    for (const Range& range : kNotPublic) {
      if ((*v4 ^ range.first) >> (32 - range.bits) == 0) return false;
    }
    return true;
  }
  // In version 6 only 2000::/3 is the internet. Parts of it are not: 2001::/23 has protocols, 2001:db8::/32 is for
  // examples, and 2002::/16 carries addresses of version 4.
  const std::vector<std::string> parts = split(ip, ':');
  const auto first = number_of(parts[0], 16, 0xFFFF);
  if (!first || *first < 0x2000 || *first > 0x3FFF || *first == 0x2002) return false;
  const auto second = parts[1].empty() ? 0 : number_of(parts[1], 16, 0xFFFF);
  if (!second) return false;
  return *first != 0x2001 || (*second >= 0x200 && *second != 0xDB8);
}

}  // namespace doppler::store
