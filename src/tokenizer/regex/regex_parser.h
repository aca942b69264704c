// The syntax tree of a pattern and its parser. Read next: regex_compile.cpp, which turns the tree into a
// table.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {

inline constexpr int kRegexMaxDepth = 32;        // nested groups and classes
inline constexpr int kRegexMaxRepeat = 1000;     // m and n of {m,n}
inline constexpr size_t kRegexMaxBytes = 16384;  // of a pattern; the longest known ones have about 1,000

struct RegexNode {
  enum class Kind : uint8_t {
    kSet,        // one character of `set`
    kLook,       // the next character is in `set`; or the text ends here and `at_end`
    kConcat,     // children in order; none: the empty text
    kAlternate,  // the first child that leads to a match
    kRepeat,     // children[0], min to max times
  };
  Kind kind = Kind::kConcat;
  CodePointSet set;
  bool at_end = false;
  int min = 0, max = 0;  // max < 0: no limit
  bool greedy = true;
  std::vector<RegexNode> children;
};

Result<RegexNode> parse_regex(std::string_view pattern);

}  // namespace doppler::tokenizer
