// The parts of Unicode that the tokenizers need: UTF-8 in and out, categories, white space, lower case, and sets of
// code points. Tables are generated (tools/unicode_tables); the version is unicode_version(). Read next: normalise.h,
// ../regex/regex.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace doppler::tokenizer {

inline constexpr char32_t kMaxCodePoint = 0x10FFFF;
inline constexpr char32_t kReplacementCharacter = 0xFFFD;
// decode_utf8 returns this for a byte that does not start a well-formed character: above all code points, so that it
// belongs to no positive class of characters.
inline constexpr char32_t kInvalidCodePoint = 0x110000;

// In the order of the generated table.
enum class Category : uint8_t {
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
  kCc,
  kCf,
  kCs,
  kCo,
  kCn,
};
inline constexpr int kCategoryCount = 30;

const char* unicode_version();
Category category(char32_t code);
bool is_mark(char32_t code);
bool is_punctuation(char32_t code);  // \p{P}
bool is_white_space(char32_t code);  // the property White_Space, which is \s
char32_t to_lower(char32_t code);    // simple mapping; U+0130 has none and maps to 'i'

struct DecodedChar {
  char32_t code;    // kInvalidCodePoint: the byte is no character
  uint32_t length;  // bytes, at least 1
};
// text[at] must exist. Overlong forms, surrogates and code points above U+10FFFF are invalid.
inline DecodedChar decode_utf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t left = text.size() - at;
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const auto bits = [&](size_t i) { return static_cast<char32_t>(byte(i) & 0x3F); };
  if (lead >= 0xC2 && lead < 0xE0 && left >= 2 && continues(1)) {
    return {(static_cast<char32_t>(lead & 0x1F) << 6) | bits(1), 2};
  }
  if (lead >= 0xE0 && lead < 0xF0 && left >= 3 && continues(1) && continues(2)) {
    const char32_t code = (static_cast<char32_t>(lead & 0x0F) << 12) | (bits(1) << 6) | bits(2);
    if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) return {code, 3};
  }
  if (lead >= 0xF0 && lead < 0xF5 && left >= 4 && continues(1) && continues(2) && continues(3)) {
    const char32_t code =
        (static_cast<char32_t>(lead & 0x07) << 18) | (bits(1) << 12) | (bits(2) << 6) | bits(3);
    if (code >= 0x10000 && code <= kMaxCodePoint) return {code, 4};
  }
  return {kInvalidCodePoint, 1};
}
void append_utf8(std::string& out, char32_t code);  // code <= kMaxCodePoint
bool is_utf8(std::string_view text);

// A set of code points as sorted, disjoint, non-touching ranges; what a character class of a regex means.
class CodePointSet {
 public:
  struct Range {
    char32_t first, last;
    bool operator==(const Range&) const = default;
  };
  void add(char32_t first, char32_t last);
  void add(const CodePointSet& other);
  void add(Category wanted);
  CodePointSet complement() const;  // within 0 .. kInvalidCodePoint: a negated class takes a stray byte
  CodePointSet intersection(const CodePointSet& other) const;
  bool contains(char32_t code) const;
  const std::vector<Range>& ranges() const { return ranges_; }
  bool operator==(const CodePointSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

// "L", "Lu", "N", "Nd", ... and their long names ("Letter"); empty when unknown.
std::optional<CodePointSet> category_set(std::string_view name);
CodePointSet white_space_set();

}  // namespace doppler::tokenizer
