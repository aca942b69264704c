// A pull reader for the large members of tokenizer.json. A document tree (base/json.h) of a vocabulary of
// 256k tokens costs seconds; this walks the text once and hands out views. Small members are cut out with
// skip_value() and given to parse_json().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace doppler::tokenizer {

class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  // The first character of the next token, without reading it; 0 at the end.
  char peek();
  // Reads one of { } [ ] : , or answers false and reads nothing.
  bool take(char sign);
  // Reads a string; the view is valid until the next call. Escapes are resolved, UTF-8 is checked.
  Result<std::string_view> string();
  Result<int64_t> integer();
  Result<double> number();
  // Reads any value and answers its text. Nesting is bounded by counting, not by recursion.
  Result<std::string_view> skip_value();

  // {"a": ..., "b": ...}: calls member(key) for each; it must read the value.
  template <class Member>
  Result<> object(const Member& member) {
    if (!take('{')) return expected("an object");
    if (take('}')) return {};
    do {
      DP_TRY(const std::string_view view, string());
      const std::string key(view);
      if (!take(':')) return expected("':'");
      DP_CHECK(member(key));
    } while (take(','));
    return take('}') ? Result<>() : expected("',' or '}'");
  }
  template <class Item>
  Result<> array(const Item& item) {
    if (!take('[')) return expected("an array");
    if (take(']')) return {};
    do {
      DP_CHECK(item());
    } while (take(','));
    return take(']') ? Result<>() : expected("',' or ']'");
  }
  Unexpected expected(const char* what) const;

 private:
  void skip_space();
  std::string_view number_text();
  Result<> skip_string();
  Result<uint32_t> hex4();

  std::string_view text_;
  size_t at_ = 0;
  std::string buffer_;
};

}  // namespace doppler::tokenizer
