// Character classes of the pattern syntax: \s, \p{L}, [^\r\n\p{L}] and the like. Only regex_parser.cpp uses them.
#pragma once

#include <string_view>

#include "base/result.h"
#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {

// A place in a pattern. Parsing functions move `at` past what they read.
struct PatternCursor {
  std::string_view text;
  size_t at = 0;

  bool done() const { return at >= text.size(); }
  char peek() const { return text[at]; }
  bool take(std::string_view wanted) {
    if (!text.substr(at).starts_with(wanted)) return false;
    at += wanted.size();
    return true;
  }
  char32_t take_char() {
    const DecodedChar c = decode_utf8(text, at);
    at += c.length;
    return c.code;
  }
};

// The meaning of an escape inside and outside of brackets: a class or one character. The cursor is after the '\'.
Result<CodePointSet> parse_class_escape(PatternCursor& cursor);
// The cursor is after the opening '['; reads to the closing one.
Result<CodePointSet> parse_bracket_class(PatternCursor& cursor, int depth);
// ASCII letters in both cases, and the two other characters that fold to one (U+017F, U+212A).
CodePointSet fold_case(const CodePointSet& set);

}  // namespace doppler::tokenizer
