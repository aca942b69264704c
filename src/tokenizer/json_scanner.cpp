// Scanning JSON text (json_scanner.h).
#include "tokenizer/json_scanner.h"

#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {

void JsonScanner::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
    ++at_;
  }
}

char JsonScanner::peek() {
  skip_space();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonScanner::take(char sign) {
  if (peek() != sign || at_ == text_.size()) return false;
  ++at_;
  return true;
}

Unexpected JsonScanner::expected(const char* what) const {
  return fail(ErrorKind::kInvalidInput, "At byte %zu of tokenizer.json there should be %s, not \"%s\".", at_,
              what, printable(text_.substr(at_, 20)).c_str());
}

Result<uint32_t> JsonScanner::hex4() {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    const char lower = static_cast<char>(c | 32);
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<uint32_t>(lower - 'a' + 10);
    } else {
      return expected("four hexadecimal digits");
    }
  }
  return value;
}

Result<std::string_view> JsonScanner::string() {
  if (!take('"')) return expected("a string");
  const size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\') ++at_;
  std::string_view plain = text_.substr(begin, at_ - begin);
  if (at_ < text_.size() && text_[at_] == '"') {  // no escapes
    ++at_;
    if (!is_utf8(plain)) return expected("UTF-8 text before here");
    return plain;
  }
  buffer_.assign(plain);
  while (at_ < text_.size() && text_[at_] != '"') {
    const char c = text_[at_++];
    if (c != '\\') {
      buffer_.push_back(c);
      continue;
    }
    if (at_ == text_.size()) break;
    const char escape = text_[at_++];
    switch (escape) {
      case '"':
      case '\\':
      case '/':
        buffer_.push_back(escape);
        break;
      case 'b':
        buffer_.push_back('\b');
        break;
      case 'f':
        buffer_.push_back('\f');
        break;
      case 'n':
        buffer_.push_back('\n');
        break;
      case 'r':
        buffer_.push_back('\r');
        break;
      case 't':
        buffer_.push_back('\t');
        break;
      case 'u': {
        DP_TRY(uint32_t code, hex4());
        if (code >= 0xD800 && code < 0xDC00) {  // the first half of a pair
          if (text_.substr(at_, 2) != "\\u") return expected("the second half of a surrogate pair");
          at_ += 2;
          DP_TRY(const uint32_t second, hex4());
          if (second < 0xDC00 || second > 0xDFFF)
            return expected("a second half of a surrogate pair before here");
          code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
        } else if (code >= 0xDC00 && code <= 0xDFFF) {
          return expected("the first half of a surrogate pair before here");
        }
        append_utf8(buffer_, code);
        break;
      }
      default:
        return expected("a known escape before here");
    }
  }
  if (at_ == text_.size()) return expected("the end of a string");
  ++at_;
  if (!is_utf8(buffer_)) return expected("UTF-8 text before here");
  return std::string_view(buffer_);
}

std::string_view JsonScanner::number_text() {
  skip_space();
  const size_t begin = at_;
  while (at_ < text_.size() && (std::string_view("+-.eE").find(text_[at_]) != std::string_view::npos ||
                                (text_[at_] >= '0' && text_[at_] <= '9'))) {
    ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

Result<int64_t> JsonScanner::integer() {
  const auto value = parse_int(number_text());
  if (!value) return expected("a whole number before here");
  return *value;
}

Result<double> JsonScanner::number() {
  const auto value = parse_double(number_text());
  if (!value) return expected("a number before here");
  return *value;
}

Result<> JsonScanner::skip_string() {
  for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
    if (text_[at_] == '\\') ++at_;
  }
  if (at_ >= text_.size()) {
    at_ = text_.size();
    return expected("the end of a string");
  }
  ++at_;
  return {};
}

Result<std::string_view> JsonScanner::skip_value() {
  skip_space();
  const size_t begin = at_;
  size_t depth = 0;
  do {
    const char c = peek();
    if (c == '"') {
      DP_CHECK(skip_string());
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at_;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return expected("a value");
      --depth;
      ++at_;
    } else if (at_ == text_.size()) {
      return expected("a value");
    } else if (c == ',' || c == ':') {
      if (depth == 0) return expected("a value");
      ++at_;
    } else {  // a number or a word
      while (at_ < text_.size() &&
             std::string_view(" \n\t\r,:{}[]\"").find(text_[at_]) == std::string_view::npos)
        ++at_;
    }
  } while (depth > 0);
  return text_.substr(begin, at_ - begin);  // who needs the value parses it
}

}  // namespace doppler::tokenizer
