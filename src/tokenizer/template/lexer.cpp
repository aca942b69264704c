// The two modes of a template: data up to the next tag, and the tokens within a tag. See lexer.h.
#include "tokenizer/template/lexer.h"

#include <algorithm>
#include <cstdarg>

#include "tokenizer/template/limits.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

// Line ends become \n and one newline at the end of the source is dropped.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    const bool carriage = source[i] == '\r';
    if (carriage && i + 1 < source.size() && source[i + 1] == '\n') ++i;
    out += carriage ? '\n' : source[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) DP_CHECK(data());
    add(TokenKind::kEnd, "end of template");
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool looking_at(std::string_view text) const { return source_.substr(at_).starts_with(text); }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }

  void advance(size_t count) {
    line_ +=
        static_cast<uint32_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at_ + count), '\n'));
    at_ += count;
  }

  void skip_space() {
    while (at_ < source_.size()) {
      const CodePoint point = code_point_at(source_, at_);
      if (!is_space(point.value)) return;
      advance(point.bytes);
    }
  }

  // After a tag: "-" also eats the white space that follows; a block or comment eats one newline unless "+".
  void close_tag(char sign, bool is_block) {
    advance(sign ? 3 : 2);
    if (sign == '-')
      skip_space();
    else if (is_block && sign != '+' && peek() == '\n')
      advance(1);
    line_starting_ = source_[at_ - 1] == '\n';
  }

  // The text before a tag, cut by the tag's sign or by lstrip_blocks.
  std::string_view before_tag(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return strip(text, nullptr, false, true);
    if (sign == '+' || is_variable) return text;
    const size_t newline = text.rfind('\n');
    const size_t line_begin = newline == text.npos ? 0 : newline + 1;
    if (line_begin == 0 && !line_starting_) return text;
    return strip(text.substr(line_begin), nullptr, true, false).empty() ? text.substr(0, line_begin) : text;
  }

  size_t find_tag() const {
    for (size_t i = source_.find('{', at_); i != source_.npos; i = source_.find('{', i + 1)) {
      const char next = i + 1 < source_.size() ? source_[i + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return i;
    }
    return source_.npos;
  }

  static char sign_of(char c) { return c == '-' || c == '+' ? c : '\0'; }

  Result<void> data() {
    const size_t tag = find_tag();
    if (tag == source_.npos) {
      add(TokenKind::kData, std::string(source_.substr(at_)));
      advance(source_.size() - at_);
      return {};
    }
    const char type = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? sign_of(source_[tag + 2]) : '\0';
    const std::string_view text = before_tag(source_.substr(at_, tag - at_), sign, type == '{');
    if (!text.empty()) add(TokenKind::kData, std::string(text));
    advance(tag - at_);
    const uint32_t line = line_;
    if (type == '#') return comment(line);
    advance(sign ? 3 : 2);
    line_starting_ = false;
    if (type == '%') {
      DP_TRY(const bool was_raw, raw(line));
      if (was_raw) return {};
    }
    return tag_content(type == '{', line);
  }

  Result<void> comment(uint32_t line) {
    const size_t end = source_.find("#}", at_ + 2);
    if (end == source_.npos) return syntax_error(line, "the comment that starts here has no end.");
    const char sign = end > at_ + 2 ? sign_of(source_[end - 1]) : '\0';
    advance(end - at_ - (sign ? 1 : 0));
    close_tag(sign, true);
    return {};
  }

  // At the inside of a block tag: "raw %}...{% endraw %}" becomes data.
  Result<bool> raw(uint32_t line) {
    size_t i = at_;
    const auto skip = [&] {
      while (i < source_.size() && is_space(code_point_at(source_, i).value))
        i += code_point_at(source_, i).bytes;
    };
    skip();
    if (!source_.substr(i).starts_with("raw")) return false;
    i += 3;
    skip();
    const bool minus = source_.substr(i).starts_with("-%}");
    if (!minus && !source_.substr(i).starts_with("%}")) return false;
    advance(i - at_);
    close_tag(minus ? '-' : '\0', false);
    for (size_t open = source_.find("{%", at_); open != source_.npos; open = source_.find("{%", open + 2)) {
      i = open + 2;
      const char sign = i < source_.size() ? sign_of(source_[i]) : '\0';
      i += sign ? 1 : 0;
      skip();
      if (!source_.substr(i).starts_with("endraw")) continue;
      i += 6;
      skip();
      const char end_sign = i < source_.size() ? sign_of(source_[i]) : '\0';
      if (!source_.substr(i + (end_sign ? 1 : 0)).starts_with("%}")) continue;
      const std::string_view text = before_tag(source_.substr(at_, open - at_), sign, false);
      if (!text.empty()) add(TokenKind::kData, std::string(text));
      advance(i - at_);
      close_tag(end_sign, true);
      return true;
    }
    return syntax_error(line, "the raw block that starts here has no endraw.");
  }

  Result<void> tag_content(bool is_variable, uint32_t line) {
    const std::string_view close = is_variable ? "}}" : "%}";
    add(is_variable ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, is_variable ? "{{" : "{%");
    std::string open;  // closing brackets that are still owed
    for (;;) {
      skip_space();
      if (at_ >= source_.size()) {
        return syntax_error(line, "the tag that starts here is not closed by '%s'.",
                            std::string(close).c_str());
      }
      const char sign = sign_of(peek());
      const bool with_sign =
          sign && source_.substr(at_ + 1).starts_with(close) && (sign == '-' || !is_variable);
      if (open.empty() && (looking_at(close) || with_sign)) {
        add(is_variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, std::string(close));
        close_tag(with_sign ? sign : '\0', !is_variable);
        return {};
      }
      DP_CHECK(token(open));
    }
  }

  Result<void> token(std::string& open) {
    const char c = peek();
    if (c == '"' || c == '\'') return string_literal(c);
    if (is_digit(c)) return number();
    if (is_name_start(c)) {
      size_t end = at_;
      while (end < source_.size() && is_name_part(source_[end])) ++end;
      add(TokenKind::kName, std::string(source_.substr(at_, end - at_)));
      at_ = end;
      return {};
    }
    for (const std::string_view two : {"==", "!=", ">=", "<=", "//", "**"}) {
      if (!looking_at(two)) continue;
      add(TokenKind::kOperator, std::string(two));
      at_ += 2;
      return {};
    }
    if (c == '\0' || std::string_view("+-/*%~[](){}><=.:|,").find(c) == std::string_view::npos) {
      const CodePoint point = code_point_at(source_, at_);
      return syntax_error(line_, "unexpected character '%s'.",
                          printable(source_.substr(at_, point.bytes)).c_str());
    }
    if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) return syntax_error(line_, "unexpected '%c'.", c);
      if (open.back() != c) return syntax_error(line_, "unexpected '%c', expected '%c'.", c, open.back());
      open.pop_back();
    }
    add(TokenKind::kOperator, std::string(1, c));
    ++at_;
    return {};
  }

  // Digits with single underscores between them; returns the end.
  size_t digits_end(size_t from) const {
    size_t end = from;
    while (end < source_.size() &&
           (is_digit(source_[end]) ||
            (source_[end] == '_' && end > from && end + 1 < source_.size() && is_digit(source_[end + 1])))) {
      ++end;
    }
    return end;
  }

  Result<void> number() {
    size_t end = digits_end(at_);
    bool is_float = false;
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      is_float = true;
      end = digits_end(end + 1);
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const bool sign = end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-');
      const size_t first = end + (sign ? 2 : 1);
      if (first < source_.size() && is_digit(source_[first])) {
        is_float = true;
        end = digits_end(first);
      }
    }
    std::string text(source_.substr(at_, end - at_));
    std::erase(text, '_');
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(text));
    at_ = end;
    return {};
  }

  Result<void> string_literal(char quote) {
    const uint32_t line = line_;
    std::string out;
    size_t i = at_ + 1;
    while (i < source_.size() && source_[i] != quote) {
      if (source_[i] != '\\') {
        out += source_[i++];
        continue;
      }
      DP_CHECK(escape(++i, out));
    }
    if (i >= source_.size()) return syntax_error(line, "the text that starts here has no closing quote.");
    tokens_.push_back({TokenKind::kString, line, std::move(out)});
    advance(i + 1 - at_);
    return {};
  }

  // Python's escapes; `i` is after the backslash and moves past the escape.
  Result<void> escape(size_t& i, std::string& out) {
    if (i >= source_.size()) return {};
    const char c = source_[i++];
    constexpr std::string_view kLetters = "abfnrtv\\'\"";
    constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t index = kLetters.find(c); index != kLetters.npos) {
      out += kMeanings[index];
      return {};
    }
    if (c == '\n') return {};
    const size_t hex = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t value = 0;
    if (hex == 0) {
      if (c < '0' || c > '7') {
        (out += '\\') += c;  // an unknown escape stays unchanged
        return {};
      }
      value = static_cast<uint32_t>(c - '0');
      for (int n = 0; n < 2 && i < source_.size() && source_[i] >= '0' && source_[i] <= '7'; ++n) {
        value = value * 8 + static_cast<uint32_t>(source_[i++] - '0');
      }
    }
    for (size_t n = 0; n < hex; ++n, ++i) {
      const char digit = i < source_.size() ? static_cast<char>(source_[i] | 0x20) : '\0';
      const bool letter = digit >= 'a' && digit <= 'f';
      if (!letter && !(i < source_.size() && is_digit(source_[i]))) {
        return syntax_error(line_, "escape \\%c needs %zu hexadecimal digits.", c, hex);
      }
      value = value * 16 + static_cast<uint32_t>(letter ? digit - 'a' + 10 : digit - '0');
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
      return syntax_error(line_, "escape \\%c names no character.", c);
    }
    append_utf8(out, value);
    return {};
  }

  std::string_view source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return fail(ErrorKind::kInvalidInput, "The chat template has %zu bytes, more than the allowed %zu.",
                source.size(), kMaxTemplateBytes);
  }
  const std::string text = normalized(source);
  return Lexer(text).run();
}

Unexpected syntax_error(uint32_t line, const char* format, ...) {
  va_list args;
  va_start(args, format);
  const std::string sentence = format_text_v(format, args);
  va_end(args);
  return fail(ErrorKind::kInvalidInput, "Line %u of the chat template: %s", line, sentence.c_str());
}

}  // namespace doppler::tmpl
