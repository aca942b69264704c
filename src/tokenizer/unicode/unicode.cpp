// UTF-8, categories and code point sets over the generated tables, by binary search: the scanners build their
// own flat tables from the sets (regex/regex.cpp), so speed matters little here.
#include "tokenizer/unicode/unicode.h"

#include <algorithm>
#include <array>

#include "tokenizer/unicode/unicode_data.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace doppler::tokenizer {
namespace {

constexpr std::array<const char*, kCategoryCount> kCategoryNames = {
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"};
struct LongName {
  const char* name;
  const char* prefix;  // of the two-letter names it covers
};
constexpr LongName kLongNames[] = {{"Letter", "L"},
                                   {"Mark", "M"},
                                   {"Number", "N"},
                                   {"Punctuation", "P"},
                                   {"Punct", "P"},
                                   {"Symbol", "S"},
                                   {"Separator", "Z"},
                                   {"Other", "C"},
                                   {"Alphabetic", "L"},
                                   {"Lowercase_Letter", "Ll"},
                                   {"Uppercase_Letter", "Lu"},
                                   {"Decimal_Number", "Nd"}};
constexpr CodePointSet::Range kWhiteSpace[] = {
    {0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

}  // namespace

const char* unicode_version() { return kUnicodeVersion; }

Category category(char32_t code) {
  if (code > kMaxCodePoint) return Category::kCn;
  return static_cast<Category>(value_at(unicode_tables().categories, code));
}

bool is_mark(char32_t code) {
  const Category c = category(code);
  return c >= Category::kMn && c <= Category::kMe;
}

bool is_punctuation(char32_t code) {
  const Category c = category(code);
  return c >= Category::kPc && c <= Category::kPo;
}

bool is_white_space(char32_t code) {
  return std::ranges::any_of(kWhiteSpace, [code](auto r) { return code >= r.first && code <= r.last; });
}

char32_t to_lower(char32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  if (code == 0x130) return 'i';
  const std::vector<LowerRun>& runs = unicode_tables().lower_runs;
  const auto after = std::ranges::upper_bound(runs, static_cast<uint32_t>(code), {}, &LowerRun::first);
  if (after == runs.begin()) return code;
  const LowerRun& run = after[-1];
  if (code > run.last || (code - run.first) % static_cast<uint32_t>(run.stride) != 0) return code;
  return code + static_cast<char32_t>(run.delta);
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const DecodedChar c = decode_utf8(text, at);
    if (c.code == kInvalidCodePoint) return false;
    at += c.length;
  }
  return true;
}

void CodePointSet::add(char32_t first, char32_t last) {
  // Everything that overlaps or touches [first, last] melts into it.
  auto begin = std::ranges::lower_bound(ranges_, first, {}, [](const Range& r) { return r.last + 1; });
  auto end = begin;
  while (end != ranges_.end() && end->first <= last + 1) {
    first = std::min(first, end->first);
    last = std::max(last, end->last);
    ++end;
  }
  begin = ranges_.erase(begin, end);
  ranges_.insert(begin, Range{first, last});
}

void CodePointSet::add(const CodePointSet& other) {
  for (const Range& r : other.ranges_) add(r.first, r.last);
}

void CodePointSet::add(Category wanted) {
  const std::vector<Step>& steps = unicode_tables().categories;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].value != static_cast<uint32_t>(wanted)) continue;
    add(steps[i].first, i + 1 < steps.size() ? steps[i + 1].first - 1 : kMaxCodePoint);
  }
}

CodePointSet CodePointSet::complement() const {
  CodePointSet out;
  char32_t next = 0;
  for (const Range& r : ranges_) {
    if (r.first > next) out.ranges_.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kInvalidCodePoint) out.ranges_.push_back({next, kInvalidCodePoint});
  return out;
}

CodePointSet CodePointSet::intersection(const CodePointSet& other) const {
  CodePointSet out = complement();
  out.add(other.complement());
  return out.complement();
}

bool CodePointSet::contains(char32_t code) const {
  const auto at = std::ranges::lower_bound(ranges_, code, {}, &Range::last);
  return at != ranges_.end() && at->first <= code;
}

std::optional<CodePointSet> category_set(std::string_view name) {
  for (const LongName& row : kLongNames) {
    if (name == row.name) name = row.prefix;
  }
  if (name.empty() || name.size() > 2) return std::nullopt;
  CodePointSet set;
  bool known = false;
  for (int i = 0; i < kCategoryCount; ++i) {
    if (std::string_view(kCategoryNames[static_cast<size_t>(i)]).starts_with(name)) {
      set.add(static_cast<Category>(i));
      known = true;
    }
  }
  if (!known) return std::nullopt;
  return set;
}

CodePointSet white_space_set() {
  CodePointSet set;
  for (const auto& r : kWhiteSpace) set.add(r.first, r.last);
  return set;
}

}  // namespace doppler::tokenizer
