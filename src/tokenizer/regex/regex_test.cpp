// Compares matches with Oniguruma's, as tables: pattern, text, the matches.
#include "tokenizer/regex/regex.h"

#include <gtest/gtest.h>

namespace doppler::tokenizer {
namespace {

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  if (!regex) return {regex.error().sentence()};
  std::vector<std::string> out;
  RegexScan scan(*regex, text);
  for (size_t begin = 0, end = 0; scan.next(begin, end);) out.emplace_back(text.substr(begin, end - begin));
  return out;
}

TEST(Regex, Matches) {
  struct Row {
    const char* pattern;
    const char* text;
    std::vector<std::string> matches;
  };
  const Row rows[] = {
      {"a|ab", "ab", {"a"}},  // the first alternative, not the longest
      {"(a|ab)(c|bcd)(d*)", "abcd", {"abcd"}},
      {"a{2,3}", "aaaaa", {"aaa", "aa"}},
      {"a{2,3}?", "aaaaa", {"aa", "aa"}},
      {"a{,2}b", "aaab", {"aab"}},
      {"a{", "a{", {"a{"}},
      {"x{2}+", "xxxxx", {"xxxx"}},  // {n}+ repeats, it is not possessive
      {"a++b|a", "aab aa", {"aab", "a", "a"}},
      {"a?+a", "aab", {"aa"}},
      {"(?i:'re|'S)", "'RE 's 'ſ 'r", {"'RE", "'s", "'ſ"}},
      {R"(\s+(?!\S)|\s+)", "a   b  ", {"  ", " ", "  "}},
      {R"(\s+$)", " a  \n b ", {"  ", " "}},  // $ is the end of a line
      {R"(\s++\z)", " a  ", {"  "}},
      {R"([^\s\p{L}]+)", "ab12,é3", {"12,", "3"}},
      {R"([a-c&&[^b]]+)", "abcd", {"a", "c"}},
      {R"([\p{Han}]+)", "我想a天", {"我想", "天"}},
      {R"(\P{L}+|\p{^L})", "a1", {"1"}},
      {R"(\w+|[^\w\s]+)", "né_½ -!", {"né_½", "-!"}},
      {R"(\u00e9|\x41|\x{1F999})", "éA🦙", {"é", "A", "🦙"}},
      {R"([]a]+)", "]a", {"]a"}},
      {".+", "a\nb", {"a", "b"}},
      {"(?:a*)*b", "aab", {"aab"}},
      {"", "a", {}},
  };
  for (const Row& row : rows) EXPECT_EQ(matches(row.pattern, row.text), row.matches) << row.pattern;
}

TEST(Regex, RefusalsSayWhat) {
  const std::pair<std::string, const char*> rows[] = {
      {R"(a\b)", "\\b"},
      {"(?<=a)b", "(?<="},
      {"(?=ab)c", "more than one"},
      {"(ab)++", "possessive"},
      {"a)", "')'"},
      {"(a", "not closed"},
      {"[a", "not closed"},
      {"[b-a]", "upwards"},
      {R"(\p{Klingon})", "Klingon"},
      {"*a", "'*'"},
      {"a{5000}", "5000"},
      {"\\", "backslash"},
      {"(a{900}){900}", "20000"},
      {std::string(99, '(') + std::string(99, ')'), "deeper"},
      {"(x|y)*x(x|y){14}", "states"},
      {"\xFF", "UTF-8"},
      {std::string(20000, 'a'), "bytes"},
  };
  for (const auto& [pattern, part] : rows) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex) << pattern;
    EXPECT_NE(regex.error().sentence().find(part), std::string::npos)
        << pattern << " -> " << regex.error().sentence();
  }
}

TEST(Regex, HostileTextIsLinear) {
  // A quadratic scan would take hours here; the test's time limit is the assertion.
  const std::string spaces = std::string(1 << 20, ' ') + "a";
  EXPECT_EQ(matches(R"(\s+$)", spaces).size(), 0u);
  EXPECT_EQ(matches(R"(\s*[\r\n]+|\s)", spaces).size(), spaces.size() - 1);
  EXPECT_EQ(matches(".*?b|[0-9]", spaces).size(), 0u);
}

}  // namespace
}  // namespace doppler::tokenizer
