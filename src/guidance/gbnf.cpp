#include "guidance/gbnf.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/text.h"

namespace doppler::guidance {
namespace {

constexpr uint32_t kMostNesting = 100;

struct Part {
  std::string text;  // of Lark; or
  int rule = -1;     // a reference
};

struct Rule {
  std::string name;
  std::vector<Part> body;
  bool is_defined = false;
  bool is_terminal = false;
};

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// A character in a regular expression, in a class too.
std::string escaped(uint32_t code) {
  const bool is_plain = code < 0x80 && is_name_char(static_cast<char>(code)) && code != '-';
  return is_plain ? std::string(1, static_cast<char>(code)) : format_text("\\x{%X}", code);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<std::vector<Rule>> read() {
    skip(true);
    while (at_ < text_.size()) DP_CHECK(read_rule());
    for (const Rule& rule : rules_) {
      if (!rule.is_defined)
        return fail(ErrorKind::kInvalidInput, "The grammar has no rule \"%s\".", rule.name.c_str());
    }
    return std::move(rules_);
  }

 private:
  Unexpected wrong(const char* wanted) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, std::min(at_, text_.size())), '\n');
    return fail(ErrorKind::kInvalidInput, "Line %lld of the grammar has \"%s\" instead of %s.",
                static_cast<long long>(line),
                printable(text_.substr(std::min(at_, text_.size()), 12)).c_str(), wanted);
  }

  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  // Blanks and comments, and with `lines` line ends.
  void skip(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string read_name() {
    const size_t begin = at_;
    while (is_name_char(now())) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  size_t rule_of(const std::string& name) {
    const auto [found, is_new] = ids_.emplace(name, rules_.size());
    if (is_new) rules_.push_back({.name = name, .body = {}});
    return found->second;
  }

  Result<void> read_rule() {
    const std::string name = read_name();
    skip(false);
    if (name.empty() || !take("::=")) return wrong("a rule: NAME ::= ...");
    skip(true);
    out_.clear();
    DP_CHECK(read_alternatives(0));
    Rule& rule = rules_[rule_of(name)];
    if (rule.is_defined)
      return fail(ErrorKind::kInvalidInput, "The grammar has two rules \"%s\".", name.c_str());
    rule.is_defined = true;
    rule.body = std::move(out_);
    skip(false);
    if (at_ < text_.size() && now() != '\n' && now() != '\r') return wrong("the end of the rule");
    skip(true);
    return {};
  }

  // A "|" may also begin the next line.
  bool take_bar(bool nested) {
    const size_t before = at_;
    skip(true);
    if (take("|")) return true;
    if (!nested) at_ = before;
    return false;
  }

  Result<void> read_alternatives(uint32_t depth) {
    if (depth > kMostNesting)
      return fail(ErrorKind::kInvalidInput, "The grammar has groups deeper than %u.", kMostNesting);
    do {
      skip(true);
      const size_t before = out_.size();
      DP_CHECK(read_sequence(depth));
      if (out_.size() == before) add("\"\"");
      if (!take_bar(depth > 0)) return {};
      add("|");
    } while (true);
  }

  void add(std::string text) { out_.push_back({.text = " " + std::move(text)}); }

  Result<void> read_sequence(uint32_t depth) {
    while (true) {
      skip(depth > 0);
      const char c = now();
      if (c == '"') {
        DP_CHECK(read_literal());
      } else if (c == '[') {
        DP_CHECK(read_class());
      } else if (c == '.') {
        ++at_;
        add("/(?s:.)/");
      } else if (c == '(') {
        ++at_;
        add("(");
        DP_CHECK(read_alternatives(depth + 1));
        if (!take(")")) return wrong("\")\"");
        add(")");
      } else if (is_name_char(c)) {
        if (begins_rule()) return {};
        const size_t rule = rule_of(read_name());
        out_.push_back({.text = {}, .rule = static_cast<int>(rule)});
      } else if (c == '<' || c == '!') {
        return wrong("a text, a class, a group or a rule (tokens cannot be named)");
      } else {
        return {};
      }
      skip(depth > 0);
      DP_CHECK(read_repetition());
    }
  }

  // True before a name that "::=" follows.
  bool begins_rule() {
    const size_t before = at_;
    read_name();
    skip(false);
    const bool begins = text_.substr(at_).starts_with("::=");
    at_ = before;
    return begins;
  }

  Result<void> read_repetition() {
    if (now() == '*' || now() == '+' || now() == '?') {
      out_.push_back({.text = std::string(1, text_[at_++])});
      return {};
    }
    if (now() != '{') return {};
    const size_t end = text_.find('}', at_);
    const std::string_view inside = text_.substr(at_ + 1, end == text_.npos ? 0 : end - at_ - 1);
    const size_t comma = inside.find(',');
    const auto least = parse_int(trim(inside.substr(0, comma)));
    const std::string_view rest = comma == inside.npos ? inside : trim(inside.substr(comma + 1));
    const bool is_open = comma != inside.npos && rest.empty();
    const auto most = is_open ? least : parse_int(trim(rest));
    if (!least || !most || *least < 0 || *most < *least) return wrong("{M}, {M,} or {M,N}");
    at_ = end + 1;
    out_.push_back(
        {.text = "{" + std::to_string(*least) + "," + (is_open ? "" : std::to_string(*most)) + "}"});
    return {};
  }

  // One character of a text or a class, with the escapes of both.
  Result<uint32_t> read_char() {
    if (at_ >= text_.size() || now() == '\n') return wrong("the end of the text or class");
    if (now() == '\\') {
      ++at_;
      const char kind = now();
      ++at_;
      switch (kind) {
        case 'n':
          return uint32_t{'\n'};
        case 'r':
          return uint32_t{'\r'};
        case 't':
          return uint32_t{'\t'};
        case '\\':
        case '"':
        case '[':
        case ']':
        case '-':
        case '^':
          return static_cast<uint32_t>(kind);
        case 'x':
          return read_hex(2);
        case 'u':
          return read_hex(4);
        case 'U':
          return read_hex(8);
        default:
          at_ -= 2;
          return wrong("an escape: \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH");
      }
    }
    const auto lead = static_cast<uint8_t>(text_[at_]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead >= 0x80 && (lead < 0xC2 || lead > 0xF4 || at_ + length > text_.size())) return wrong("UTF-8");
    uint32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<uint8_t>(text_[at_ + i]) & 0x3Fu);
    at_ += length;
    return code;
  }

  Result<uint32_t> read_hex(size_t digits) {
    uint32_t code = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const char c = now();
      const int value = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (value < 0) return wrong("a hexadecimal digit");
      code = code << 4 | static_cast<uint32_t>(value);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return wrong("a character of Unicode");
    return code;
  }

  Result<void> read_literal() {
    ++at_;
    std::string text;
    while (now() != '"') {
      DP_TRY(const uint32_t code, read_char());
      text += escaped(code);
    }
    ++at_;
    add(text.empty() ? "\"\"" : "/" + text + "/");
    return {};
  }

  Result<void> read_class() {
    ++at_;
    std::string text = take("^") ? "[^" : "[";
    const size_t empty = text.size();
    while (now() != ']') {
      DP_TRY(const uint32_t first, read_char());
      uint32_t last = first;
      if (now() == '-' && text_.substr(at_ + 1, 1) != "]") {
        ++at_;
        DP_TRY(last, read_char());
      }
      if (last < first) return wrong("a range that ascends");
      text += escaped(first);
      if (last != first) text += "-" + escaped(last);
    }
    if (text.size() == empty) return wrong("a class of at least one character");
    ++at_;
    add("/" + text + "]/");
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Rule> rules_;
  std::map<std::string, size_t> ids_;  // of the rules
  std::vector<Part> out_;
};

enum class Mark : uint8_t { kNew, kOpen, kDone };

// A rule is terminal if no reference leads from it to itself or to a rule that is not terminal. Rules are few and their
// chains short: the depth is that of the references.
bool mark_terminals(std::vector<Rule>& rules, size_t at, std::vector<Mark>& marks) {
  if (marks[at] != Mark::kNew) return marks[at] == Mark::kDone && rules[at].is_terminal;
  marks[at] = Mark::kOpen;
  bool is_terminal = true;
  for (const Part& part : rules[at].body) {
    if (part.rule >= 0 && !mark_terminals(rules, static_cast<size_t>(part.rule), marks)) is_terminal = false;
  }
  marks[at] = Mark::kDone;
  return rules[at].is_terminal = is_terminal;
}

}  // namespace

bool is_gbnf(std::string_view text) {
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == '\\') ++i;
      if (c == quote || c == '\n') quote = '\0';
    } else if (c == '"') {
      quote = c;
    } else if (text.substr(i).starts_with("::=")) {
      return true;
    }
  }
  return false;
}

Result<std::string> gbnf_to_lark(std::string_view text) {
  DP_TRY(std::vector<Rule> rules, Reader(text).read());
  const auto root = std::ranges::find(rules, "root", &Rule::name);
  if (root == rules.end()) return fail(ErrorKind::kInvalidInput, "The grammar has no rule \"root\".");
  constexpr size_t kMostRules = 10000;
  if (rules.size() > kMostRules) {
    return fail(ErrorKind::kInvalidInput, "The grammar has %zu rules; allowed are %zu.", rules.size(),
                kMostRules);
  }
  std::vector<Mark> marks(rules.size(), Mark::kNew);
  for (size_t i = 0; i < rules.size(); ++i) mark_terminals(rules, i, marks);
  const auto name = [&](size_t i) { return (rules[i].is_terminal ? "T" : "r") + std::to_string(i); };
  std::string out = "start: " + name(static_cast<size_t>(root - rules.begin())) + "\n";
  for (size_t i = 0; i < rules.size(); ++i) {
    out += name(i) + ":";
    for (const Part& part : rules[i].body)
      out += part.rule < 0 ? part.text : " " + name(static_cast<size_t>(part.rule));
    out += "\n";
  }
  return out;
}

}  // namespace doppler::guidance
