// Template source -> tokens. All white-space rules of jinja2 live here: -, + at the tags, trim_blocks,
// lstrip_blocks, the dropped last newline, {% raw %} and comments. The parser sees only what is left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace doppler::tmpl {

enum class TokenKind : uint8_t {
  kData,  // text between tags
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,  // text holds the unescaped content
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  uint32_t line;  // from 1
  std::string text;
};

Result<std::vector<Token>> tokenize(std::string_view source);

// "Line 3 of the chat template: <sentence>"
[[gnu::format(printf, 2, 3)]] Unexpected syntax_error(uint32_t line, const char* format, ...);

}  // namespace doppler::tmpl
