// A unit of the array: bits 0 to 7 and 31 are its label. Bit 8 says that a value hangs on it, bit 9 that its offset has
// 8 bits more. The bits from 10 on are the offset. A value has all bits but bit 31 (character_map.h).
#include "tokenizer/character_map.h"

#include <cstring>

#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {
namespace {

constexpr uint32_t kLabel = 0x800000FFu, kValue = 0x7FFFFFFFu, kHasValue = 1u << 8, kIsFar = 1u << 9;

uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & kIsFar) != 0 ? 8 : 0); }

}  // namespace

Result<CharacterMap> CharacterMap::create(std::string_view bytes) {
  uint32_t size = 0;
  if (bytes.size() > sizeof(size)) std::memcpy(&size, bytes.data(), sizeof(size));
  if (size == 0 || size % sizeof(uint32_t) != 0 || size >= bytes.size() - sizeof(size) ||
      bytes.back() != '\0') {
    return fail(
        ErrorKind::kInvalidInput,
        "The tokenizer's map of characters has %zu bytes, but its array takes %u; it is cut off, or its "
        "texts have no end.",
        bytes.size(), size);
  }
  CharacterMap out;
  out.units_.resize(size / sizeof(uint32_t));
  std::memcpy(out.units_.data(), bytes.data() + sizeof(size), size);
  out.replacements_ = bytes.substr(sizeof(size) + size);
  return out;
}

CharacterMap::Match CharacterMap::longest(std::string_view text) const {
  Match match;
  uint32_t at = offset_of(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || (units_[at] & kLabel) != byte) break;
    const uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if ((unit & kHasValue) == 0 || at >= units_.size()) continue;
    const uint32_t begin = units_[at] & kValue;
    if (begin < replacements_.size())
      match = {i + 1, replacements_.data() + begin};  // create() saw the last end
  }
  return match;
}

std::string CharacterMap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (size_t at = 0; at < text.size();) {
    const Match match = longest(text.substr(at));
    if (match.length != 0) {
      out.append(match.replacement);
      at += match.length;
      continue;
    }
    const DecodedChar c = decode_utf8(text, at);
    if (c.code == kInvalidCodePoint) {
      append_utf8(out, kReplacementCharacter);
    } else {
      out.append(text.substr(at, c.length));
    }
    at += c.length;
  }
  return out;
}

}  // namespace doppler::tokenizer
