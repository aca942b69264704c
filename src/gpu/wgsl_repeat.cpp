// wgsl_repeat.h: the directives by lines, their values by a small calculator. Standard library only, since it is built
// for the machine that builds, too.
#include "gpu/wgsl_repeat.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace doppler::gpu {
namespace {

using Error = std::unexpected<std::string>;
using Text = std::expected<std::string, std::string>;
using Done = std::expected<void, std::string>;
using Number = std::expected<int64_t, std::string>;
using Values = std::vector<std::pair<std::string, std::string>>;  // of variables, by name

constexpr std::string_view kMark = "//!";
constexpr int64_t kMostNumber = 1 << 20;
constexpr size_t kMostTimes = 64;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : parts_of(text, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

bool is_name(std::string_view text) {
  for (const char c : text) {
    if (!is_word(c)) return false;
  }
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0;
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

Error fail(size_t line, const std::string& sentence) {
  return Error("line " + std::to_string(line + 1) + ": " + sentence);
}

std::optional<int64_t> number_of(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value >= 0 && value <= kMostNumber ? std::optional(value) : std::nullopt;
}

const std::string* find(const Values& values, std::string_view name) {
  for (const auto& [known, value] : values) {
    if (known == name) return &value;
  }
  return nullptr;
}

// Calculates the whole number that $(...) means.
class Calculator {
 public:
  Calculator(std::string_view text, const Values& values) : text_(text), values_(values) {}

  Number value() {
    Number result = sum();
    if (result && at_ < text_.size()) return Error("is not understood at " + quoted(text_.substr(at_)));
    if (result && (*result < 0 || *result > kMostNumber)) return Error("is no number from 0 to 1048576");
    return result;
  }

 private:
  char peek() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Number sum() {
    Number left = product();
    while (left && (peek() == '+' || peek() == '-')) {
      const bool adds = text_[at_++] == '+';
      const Number right = product();
      if (!right) return right;
      left = adds ? *left + *right : *left - *right;
    }
    return left;
  }

  Number product() {
    Number left = operand();
    while (left && (peek() == '*' || peek() == '/' || peek() == '%')) {
      const char sign = text_[at_++];
      const Number right = operand();
      if (!right) return right;
      if (sign != '*' && *right == 0) return Error("divides by 0");
      left = sign == '*' ? *left * *right : sign == '/' ? *left / *right : *left % *right;
      if (*left > kMostNumber || *left < -kMostNumber) return Error("is no number from 0 to 1048576");
    }
    return left;
  }

  Number operand() {
    if (peek() == '(') {
      ++at_;
      Number inner = sum();
      if (inner && peek() != ')') return Error("lacks a \")\"");
      ++at_;
      return inner;
    }
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return Error("lacks a number or a variable");
    const std::string* const variable = find(values_, word);
    if (!variable && is_name(word)) return Error("names no variable " + quoted(word));
    const auto number = number_of(variable ? *variable : word);
    if (!number)
      return Error("calculates with " + quoted(variable ? *variable : word) + ", which is no number");
    return *number;
  }

  std::string_view text_;
  const Values& values_;
  size_t at_ = 0;
};

// The line with each $(...) replaced.
Text filled(size_t line, std::string_view text, const Values& values) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t begin = std::min(text.find("$(", at), text.size());
    out += text.substr(at, begin - at);
    if (begin == text.size()) return out;
    size_t end = begin + 2;
    for (int depth = 1; end < text.size(); ++end) {
      depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    if (end == text.size()) return fail(line, quoted(text.substr(begin)) + " has no end.");
    const std::string_view inside = trimmed(text.substr(begin + 2, end - begin - 2));
    if (const std::string* const word = find(values, inside)) {
      out += *word;
    } else {
      const Number number = Calculator(inside, values).value();
      if (!number) return fail(line, "$(" + std::string(inside) + ") " + number.error() + ".");
      out += std::to_string(*number);
    }
    at = end + 1;
  }
}

// A directive of this file and the `rest` of its line. All other lines are text.
struct Directive {
  enum class Kind : uint8_t { kNone, kRepeat, kBlock, kUse, kEnd, kNote } kind = Kind::kNone;
  std::string_view rest;
};

Directive directive_of(std::string_view line) {
  constexpr std::pair<std::string_view, Directive::Kind> kWords[] = {{"repeat", Directive::Kind::kRepeat},
                                                                     {"block", Directive::Kind::kBlock},
                                                                     {"use", Directive::Kind::kUse},
                                                                     {"end", Directive::Kind::kEnd},
                                                                     {"note", Directive::Kind::kNote}};
  line = trimmed(line);
  if (!line.starts_with(kMark)) return {};
  line.remove_prefix(kMark.size());
  for (const auto& [word, kind] : kWords) {
    if (!line.starts_with(word)) continue;
    const std::string_view rest = line.substr(word.size());
    if (rest.empty() || is_blank(rest[0])) return {.kind = kind, .rest = trimmed(rest)};
  }
  return {};
}

using Kind = Directive::Kind;

// The values of one variable: "0 to 3", or "a, b, c" in which words and $(...) may stand.
std::optional<std::vector<std::string>> list_of(std::string_view text) {
  std::vector<std::string> list;
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() == 3 && words[1] == "to") {
    const auto first = number_of(words[0]), last = number_of(words[2]);
    if (!first || !last || *last < *first || *last - *first >= static_cast<int64_t>(kMostTimes)) return {};
    for (int64_t i = *first; i <= *last; ++i) list.push_back(std::to_string(i));
    return list;
  }
  for (const std::string_view part : parts_of(text, ',')) {
    if (part.empty() || list.size() == kMostTimes) return {};
    list.emplace_back(part);
  }
  return list;
}

class Expander {
 public:
  explicit Expander(std::string_view text) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      lines_.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    ends_with_break_ = text.ends_with('\n');
  }

  Text run() {
    if (const Done done = expand(0, lines_.size(), {}, ""); !done) return Error(done.error());
    if (!ends_with_break_ && !out_.empty()) out_.pop_back();
    return std::move(out_);
  }

 private:
  struct Block {
    std::vector<std::string> parameters;
    size_t begin, end;  // lines
  };

  // Writes lines [begin, end) with these values of variables, each line after `indent`.
  Done expand(size_t begin, size_t end, const Values& values, std::string_view indent) {
    for (size_t i = begin; i < end; ++i) {
      const Directive directive = directive_of(lines_[i]);
      Done done;
      if (directive.kind == Kind::kNone) {
        done = write(i, values, indent);
      } else if (directive.kind == Kind::kUse) {
        done = use(i, directive.rest, values, indent);
      } else if (directive.kind == Kind::kNote) {
        continue;
      } else if (directive.kind == Kind::kEnd) {
        done = fail(i, "//!end ends nothing.");
      } else {
        const auto last = end_of(i);
        if (!last) return Error(last.error());
        done = directive.kind == Kind::kRepeat ? repeat(i, *last, directive.rest, values, indent)
                                               : keep(i, *last, directive.rest, begin != 0);
        i = *last;
      }
      if (!done) return done;
    }
    return {};
  }

  Done write(size_t line, const Values& values, std::string_view indent) {
    const std::string_view mark = trimmed(lines_[line]);
    if (mark.starts_with(kMark) && !mark.starts_with("//!import")) {
      return fail(line,
                  quoted(mark) + " is no directive; there are import, repeat, block, use, end and note.");
    }
    Text text = filled(line, lines_[line], values);
    if (!text) return Error(text.error());
    if (!text->empty()) out_ += indent;
    out_ += *text + "\n";
    return {};
  }

  // The line of the //!end that belongs to what begins in `line`.
  std::expected<size_t, std::string> end_of(size_t line) const {
    size_t depth = 0;
    for (size_t i = line; i < lines_.size(); ++i) {
      const Kind kind = directive_of(lines_[i]).kind;
      depth += kind == Kind::kRepeat || kind == Kind::kBlock ? 1 : 0;
      if (kind == Kind::kEnd && --depth == 0) return i;
    }
    return fail(line, quoted(trimmed(lines_[line])) + " has no //!end.");
  }

  Done repeat(size_t line, size_t last, std::string_view rest, const Values& outer, std::string_view indent) {
    std::vector<std::pair<std::string_view, std::vector<std::string>>> lists;
    for (const std::string_view part : parts_of(rest, ';')) {
      const size_t equals = std::min(part.find('='), part.size());
      const std::string_view name = trimmed(part.substr(0, equals));
      auto list = equals < part.size() ? list_of(part.substr(equals + 1)) : std::nullopt;
      if (!is_name(name) || !list) {
        return fail(line,
                    quoted(part) +
                        " gives no variable its values; write i = 0 to 3 or name = a, b, c, with up to 64 "
                        "values.");
      }
      if (find(outer, name)) return fail(line, quoted(name) + " is a variable already.");
      if (!lists.empty() && list->size() != lists[0].second.size()) {
        return fail(line, quoted(name) + " has " + std::to_string(list->size()) + " values and " +
                              quoted(lists[0].first) + " has " + std::to_string(lists[0].second.size()) +
                              ".");
      }
      lists.emplace_back(name, std::move(*list));
    }
    for (size_t time = 0; time < lists[0].second.size(); ++time) {
      Values values = outer;
      for (const auto& [name, list] : lists) {
        Text value = filled(line, list[time], outer);
        if (!value) return Error(value.error());
        values.emplace_back(name, std::move(*value));
      }
      if (Done done = expand(line + 1, last, values, indent); !done) return done;
    }
    return {};
  }

  Done keep(size_t line, size_t last, std::string_view rest, bool is_inside) {
    const std::vector<std::string_view> words = words_of(rest);
    if (is_inside) return fail(line, "//!block stands inside another block.");
    for (const std::string_view word : words) {
      if (!is_name(word)) return fail(line, quoted(word) + " names no block or parameter.");
    }
    if (words.empty()) return fail(line, "//!block needs a name; write //!block name parameter ...");
    const auto [at, is_new] = blocks_.try_emplace(std::string(words[0]));
    if (!is_new) return fail(line, "there are two blocks " + quoted(words[0]) + ".");
    at->second = {.parameters = {words.begin() + 1, words.end()}, .begin = line + 1, .end = last};
    return {};
  }

  Done use(size_t line, std::string_view rest, const Values& values, std::string_view indent) {
    const Text text = filled(line, rest, values);
    if (!text) return Error(text.error());
    const std::vector<std::string_view> words = words_of(*text);
    const auto block = words.empty() ? blocks_.end() : blocks_.find(std::string(words[0]));
    // A block's own lines come before it is kept, so that it cannot use itself.
    if (block == blocks_.end() || block->second.end >= line) {
      return fail(line, "there is no block " + quoted(words.empty() ? "" : words[0]) + " above.");
    }
    const std::vector<std::string>& parameters = block->second.parameters;
    if (words.size() - 1 != parameters.size()) {
      return fail(line, "block " + quoted(words[0]) + " takes " + std::to_string(parameters.size()) +
                            " values; " + std::to_string(words.size() - 1) + " are given.");
    }
    Values given;
    for (size_t i = 0; i < parameters.size(); ++i) given.emplace_back(parameters[i], words[i + 1]);
    const std::string_view own = lines_[line];
    const std::string deeper = std::string(indent) + std::string(own.substr(0, own.find(kMark)));
    return expand(block->second.begin, block->second.end, given, deeper);
  }

  std::vector<std::string_view> lines_;
  bool ends_with_break_ = true;
  std::map<std::string, Block> blocks_;
  std::string out_;
};

}  // namespace

std::expected<std::string, std::string> expand_wgsl(std::string_view text) { return Expander(text).run(); }

}  // namespace doppler::gpu
