// Regular expressions for pre-tokenizers: the subset their patterns use, compiled once to a table so that a match costs
// one look-up a character and never backtracks. Semantics are those of Oniguruma (which the tokenizer.json format
// means): leftmost, first alternative first, Unicode classes.
//
// The parser reads literals, ., classes with ranges, nesting, ^ and &&, \s \S \d \D \w \W \h \p{..} \P{..} \n \r \t \f
// \v \xHH \x{..} \uHHHH, groups (..) (?:..) (?i:..), |, ? * + {m} {m,} {m,n} with lazy ? and (on one class) possessive
// +, look-ahead (?=X) (?!X) at one class X, $ \z. Anything else (\b, back references, ...) is an error that names it.
// Read next: regex_parser.h (the syntax tree), regex_compile.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {

class Regex {
 public:
  static Result<Regex> compile(std::string_view pattern);

  // The class of a character: an index into a row of the table.
  uint32_t class_of(char32_t code) const {
    return page_classes_[page_index_[code >> kPageBits] << kPageBits | (code & (kPageSize - 1))];
  }

 private:
  friend class RegexCompiler;
  friend class RegexScan;
  static constexpr uint32_t kPageBits = 8;
  static constexpr uint32_t kPageSize = 1u << kPageBits;
  static constexpr uint32_t kPages = (kInvalidCodePoint >> kPageBits) + 1;

  // transition = next state * 2 + (the match ends before this character); next state 0: none.
  static constexpr uint32_t kStart = 1;
  uint32_t transition(uint32_t state, uint32_t char_class) const {
    return transitions_[state * class_count_ + char_class];
  }

  std::array<uint8_t, 128> ascii_classes_{};
  std::vector<uint16_t> page_index_;
  std::vector<uint8_t> page_classes_;
  uint32_t class_count_ = 0;  // including the last one, the end of the text
  std::vector<uint32_t> transitions_;
};

// The matches of one text, from left to right. Linear in practice: where an attempt enters the state that an
// earlier, failed reading had at the same place, it fails at once.
class RegexScan {
 public:
  RegexScan(const Regex& regex, std::string_view text) : regex_(regex), text_(text) {}

  // The next non-empty match at or after the end of the last one; false at the end of the text.
  bool next(size_t& begin, size_t& end);

 private:
  size_t match_at(size_t begin);  // its end; begin itself when there is none

  const Regex& regex_;
  std::string_view text_;
  size_t at_ = 0;
  // States of the last attempt after its last match: no match comes after these places in these states.
  struct Visit {
    size_t at;
    uint32_t state;
  };
  std::vector<Visit> dead_;
  std::vector<Visit> visits_;
};

}  // namespace doppler::tokenizer
