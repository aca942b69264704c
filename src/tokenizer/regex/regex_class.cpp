// Character classes, as Oniguruma reads them: \w and \d are Unicode, brackets nest, && intersects.
#include "tokenizer/regex/regex_class.h"

#include <string>

#include "tokenizer/regex/regex_parser.h"

namespace doppler::tokenizer {
namespace {

// Script Han: Scripts.txt of Unicode 16.
constexpr CodePointSet::Range kHan[] = {
    {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},   {0x3007, 0x3007},
    {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},
    {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3}, {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739},
    {0x2B740, 0x2B81D}, {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
    {0x30000, 0x3134A}, {0x31350, 0x323AF}};

CodePointSet one(char32_t code) {
  CodePointSet set;
  set.add(code, code);
  return set;
}

CodePointSet word_set() {  // \w
  CodePointSet set;
  for (const char* name : {"L", "M", "N", "Pc"}) set.add(*category_set(name));
  return set;
}

CodePointSet hex_digit_set() {  // \h
  CodePointSet set;
  set.add('0', '9');
  set.add('a', 'f');
  set.add('A', 'F');
  return set;
}

Result<CodePointSet> parse_property(PatternCursor& cursor, bool negated) {
  std::string name;
  if (cursor.take("{")) {
    const size_t close = cursor.text.find('}', cursor.at);
    if (close == std::string_view::npos) {
      return fail(ErrorKind::kInvalidInput, "A \\p{...} of the pattern is not closed.");
    }
    name = cursor.text.substr(cursor.at, close - cursor.at);
    cursor.at = close + 1;
  } else if (!cursor.done()) {
    name = cursor.text.substr(cursor.at++, 1);
  }
  std::string_view wanted = name;
  if (wanted.starts_with("^")) {
    negated = !negated;
    wanted.remove_prefix(1);
  }
  for (const char* prefix : {"Script=", "sc=", "gc=", "IsScript="}) {
    if (wanted.starts_with(prefix)) wanted.remove_prefix(std::string_view(prefix).size());
  }
  std::optional<CodePointSet> set = category_set(wanted);
  if (!set && wanted == "Han") {
    set.emplace();
    for (const auto& range : kHan) set->add(range.first, range.last);
  }
  if (!set) {
    return fail(ErrorKind::kUnsupported,
                "The pattern uses the Unicode property \\p{%s}; known are the general categories and Han.",
                printable(name).c_str());
  }
  return negated ? set->complement() : *set;
}

Result<CodePointSet> parse_hex(PatternCursor& cursor, size_t digits) {
  const bool braced = cursor.take("{");
  if (braced) digits = 6;
  uint32_t code = 0;
  size_t read = 0;
  while (read < digits && !cursor.done() &&
         hex_digit_set().contains(static_cast<unsigned char>(cursor.peek()))) {
    const char c = cursor.text[cursor.at++];
    code = code * 16 + static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    ++read;
  }
  if (read == 0 || (braced && !cursor.take("}")) || (!braced && read != digits) || code > kMaxCodePoint) {
    return fail(ErrorKind::kInvalidInput,
                "A \\x or \\u escape of the pattern is not a code point in hexadecimal.");
  }
  return one(code);
}

}  // namespace

Result<CodePointSet> parse_class_escape(PatternCursor& cursor) {
  if (cursor.done()) return fail(ErrorKind::kInvalidInput, "The pattern ends in a single backslash.");
  const char32_t c = cursor.take_char();
  switch (c) {
    case 's':
      return white_space_set();
    case 'S':
      return white_space_set().complement();
    case 'd':
      return *category_set("Nd");
    case 'D':
      return category_set("Nd")->complement();
    case 'w':
      return word_set();
    case 'W':
      return word_set().complement();
    case 'h':
      return hex_digit_set();
    case 'H':
      return hex_digit_set().complement();
    case 'p':
      return parse_property(cursor, false);
    case 'P':
      return parse_property(cursor, true);
    case 'x':
      return parse_hex(cursor, 2);
    case 'u':
      return parse_hex(cursor, 4);
    case 'n':
      return one('\n');
    case 'r':
      return one('\r');
    case 't':
      return one('\t');
    case 'f':
      return one('\f');
    case 'v':
      return one('\v');
    case 'a':
      return one('\a');
    case 'e':
      return one(0x1B);
    case '0':
      return one(0);
    default:
      break;
  }
  if (c == kInvalidCodePoint ||
      (c < 0x80 && (category_set("L")->contains(c) || category_set("N")->contains(c)))) {
    return fail(ErrorKind::kUnsupported, "The pattern uses \\%c, which this tokenizer does not read.",
                c < 0x80 ? static_cast<char>(c) : '?');
  }
  return one(c);  // an escaped sign means itself
}

Result<CodePointSet> parse_bracket_class(PatternCursor& cursor, int depth) {
  if (depth > kRegexMaxDepth) {
    return fail(ErrorKind::kUnsupported, "The pattern nests brackets deeper than %d.", kRegexMaxDepth);
  }
  const bool negated = cursor.take("^");
  CodePointSet set;
  std::optional<CodePointSet> intersected;  // what stood before the last &&
  for (bool first = true;; first = false) {
    if (cursor.done()) return fail(ErrorKind::kInvalidInput, "A [...] of the pattern is not closed.");
    if (!first && cursor.take("]")) break;
    if (cursor.take("&&")) {
      intersected = intersected ? intersected->intersection(set) : set;
      set = CodePointSet();
      continue;
    }
    CodePointSet item;
    if (cursor.take("[:")) {
      return fail(ErrorKind::kUnsupported, "The pattern uses a POSIX bracket [:...:]; write it as \\p{...}.");
    } else if (cursor.take("[")) {
      DP_TRY(item, parse_bracket_class(cursor, depth + 1));
    } else if (cursor.take("\\")) {
      DP_TRY(item, parse_class_escape(cursor));
    } else {
      item = one(cursor.take_char());
    }
    // a-z, unless the '-' is last or the left side is a class
    const auto& ranges = item.ranges();
    const bool single = ranges.size() == 1 && ranges[0].first == ranges[0].last;
    const std::string_view rest = cursor.text.substr(cursor.at);
    if (single && rest.size() >= 2 && rest[0] == '-' && rest[1] != ']' && rest[1] != '[') {
      ++cursor.at;
      CodePointSet upper;
      if (cursor.take("\\")) {
        DP_TRY(upper, parse_class_escape(cursor));
      } else {
        upper = one(cursor.take_char());
      }
      const auto& to = upper.ranges();
      if (to.size() != 1 || to[0].first != to[0].last || to[0].first < ranges[0].first) {
        return fail(ErrorKind::kInvalidInput, "A range a-b in a [...] of the pattern does not go upwards.");
      }
      set.add(ranges[0].first, to[0].first);
    } else {
      set.add(item);
    }
  }
  if (intersected) set = intersected->intersection(set);
  return negated ? set.complement() : set;
}

CodePointSet fold_case(const CodePointSet& set) {
  CodePointSet out = set;
  for (char32_t lower = 'a'; lower <= 'z'; ++lower) {
    const char32_t upper = lower - 32;
    const char32_t other = lower == 's' ? 0x17F : lower == 'k' ? 0x212A : lower;
    if (set.contains(lower) || set.contains(upper) || set.contains(other)) {
      for (const char32_t c : {lower, upper, other}) out.add(c, c);
    }
  }
  return out;
}

}  // namespace doppler::tokenizer
