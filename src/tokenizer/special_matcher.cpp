// The sorted list serves as a trie: each further byte narrows the range of candidates (special_matcher.h).
#include "tokenizer/special_matcher.h"

#include <algorithm>

#include "base/stable_order.h"
#include "tokenizer/unicode/unicode.h"

namespace doppler::tokenizer {
namespace {

// The \w of Hugging Face's regular expressions: letters, marks, numerals, what joins words, circled letters.
bool is_word(char32_t code) {
  constexpr struct {
    char32_t first, last;
  } kOthers[] = {
      {0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  if (code == kInvalidCodePoint) return false;
  const Category c = category(code);
  return c <= Category::kNl || c == Category::kPc || std::ranges::any_of(kOthers, [&](const auto& range) {
           return range.first <= code && code <= range.last;
         });
}

char32_t character_before(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return decode_utf8(text, begin).code;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !is_word(character_before(text, begin))) &&
         (end == text.size() || !is_word(decode_utf8(text, end).code));
}

}  // namespace

SpecialMatcher::SpecialMatcher(const std::vector<AddedToken>& tokens, bool with_special) {
  // The first of several equal texts stays.
  for (const uint32_t i :
       stable_order(tokens.size(), [&](uint32_t a, uint32_t b) { return tokens[a].text < tokens[b].text; })) {
    const AddedToken& token = tokens[i];
    if (token.text.empty() || (token.special && !with_special)) continue;
    if (sorted_.empty() || sorted_.back()->text != token.text) sorted_.push_back(&token);
  }
  size_t at = 0;
  for (unsigned byte = 0; byte <= 256; ++byte) {
    while (at < sorted_.size() && static_cast<unsigned char>(sorted_[at]->text[0]) < byte) ++at;
    first_.push_back(static_cast<uint32_t>(at));
  }
}

const AddedToken* SpecialMatcher::longest_at(std::string_view text, size_t at) const {
  const auto byte = static_cast<unsigned char>(text[at]);
  size_t low = first_[byte], high = first_[byte + 1u];
  const AddedToken* best = nullptr;
  for (size_t depth = 1; low < high; ++depth) {
    const AddedToken* shortest = sorted_[low];
    if (shortest->text.size() == depth) {
      if (!shortest->single_word || stands_alone(text, at, at + depth)) best = shortest;
      ++low;
    }
    if (at + depth == text.size()) break;
    const auto wanted = static_cast<unsigned char>(text[at + depth]);
    const auto byte_at = [depth](const AddedToken* t) { return static_cast<unsigned char>(t->text[depth]); };
    const auto range =
        std::ranges::equal_range(sorted_.begin() + static_cast<ptrdiff_t>(low),
                                 sorted_.begin() + static_cast<ptrdiff_t>(high), wanted, {}, byte_at);
    low = static_cast<size_t>(range.begin() - sorted_.begin());
    high = static_cast<size_t>(range.end() - sorted_.begin());
  }
  return best;
}

SpecialMatcher::Match SpecialMatcher::find(std::string_view text, size_t from) const {
  if (sorted_.empty()) return {text.size(), text.size(), nullptr};
  for (size_t at = from; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (first_[byte] == first_[byte + 1u]) continue;
    const AddedToken* token = longest_at(text, at);
    if (!token) continue;
    size_t begin = at, end = at + token->text.size();
    if (token->lstrip) {
      while (begin > from) {
        size_t last = begin - 1;
        while (last > from && begin - last < 4 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80)
          --last;
        if (!is_white_space(decode_utf8(text, last).code)) break;
        begin = last;
      }
    }
    if (token->rstrip) {
      while (end < text.size()) {
        const DecodedChar c = decode_utf8(text, end);
        if (!is_white_space(c.code)) break;
        end += c.length;
      }
    }
    return {begin, end, token};
  }
  return {text.size(), text.size(), nullptr};
}

}  // namespace doppler::tokenizer
