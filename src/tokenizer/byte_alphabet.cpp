// The table in both directions (byte_alphabet.h).
#include "tokenizer/byte_alphabet.h"

#include <array>

#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {
namespace {

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int16_t, 512> bytes;  // by code point; -1: none
  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const char32_t code = printable ? byte : next++;
      append_utf8(characters[byte], code);
      bytes[code] = static_cast<int16_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet table;
  return table;
}

}  // namespace

std::string_view byte_character(unsigned char byte) { return alphabet().characters[byte]; }

std::optional<std::string> bytes_of_characters(std::string_view text) {
  const Alphabet& table = alphabet();
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const DecodedChar c = decode_utf8(text, at);
    if (c.code >= table.bytes.size() || table.bytes[c.code] < 0) return std::nullopt;
    out.push_back(static_cast<char>(table.bytes[c.code]));
    at += c.length;
  }
  return out;
}

}  // namespace doppler::tokenizer
