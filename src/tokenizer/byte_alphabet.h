// The printable characters that byte-level vocabularies write bytes with: GPT-2's table. '!'-'~',
// U+00A1-U+00AC and U+00AE-U+00FF mean themselves; the other 68 bytes are U+0100, U+0101, ... in order (a
// space is U+0120).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace doppler::tokenizer {

// The character of a byte, as UTF-8.
std::string_view byte_character(unsigned char byte);
// Empty when a character of `text` stands for no byte.
std::optional<std::string> bytes_of_characters(std::string_view text);

}  // namespace doppler::tokenizer
