// Decompose fully, put marks into canonical order, compose again. The text is cut at starters that nothing
// before them can join, so that memory stays small and the sorting is local.
#include "tokenizer/unicode/normalise.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/stable_order.h"
#include "tokenizer/unicode/unicode.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace doppler::tokenizer {
namespace {

// Hangul syllables are composed by arithmetic: The Unicode Standard, section 3.12.
constexpr char32_t kSBase = 0xAC00, kLBase = 0x1100, kVBase = 0x1161, kTBase = 0x11A7;
constexpr char32_t kLCount = 19, kVCount = 21, kTCount = 28, kSCount = kLCount * kVCount * kTCount;

uint32_t combining_class(char32_t code) {
  if (code < 0x300) return 0;
  return value_at(unicode_tables().combining_classes, code);
}

bool append_from(const Decompositions& table, char32_t code, std::vector<char32_t>& out) {
  const auto row = std::ranges::lower_bound(table.rows, code, {}, &Decomposition::code);
  if (row == table.rows.end() || row->code != code) return false;
  const char32_t* text = table.pool.data() + row->offset;
  out.insert(out.end(), text, text + row->length);
  return true;
}

void decompose(char32_t code, bool compatibility, std::vector<char32_t>& out) {
  if (code < 0xA0) {
    out.push_back(code);
  } else if (code >= kSBase && code < kSBase + kSCount) {
    const char32_t index = code - kSBase;
    out.push_back(kLBase + index / (kVCount * kTCount));
    out.push_back(kVBase + index % (kVCount * kTCount) / kTCount);
    if (index % kTCount != 0) out.push_back(kTBase + index % kTCount);
  } else if (!(compatibility && append_from(unicode_tables().compatibility, code, out)) &&
             !append_from(unicode_tables().canonical, code, out)) {
    out.push_back(code);
  }
}

char32_t compose(char32_t first, char32_t second) {  // 0: the two do not compose
  if (first >= kLBase && first < kLBase + kLCount && second >= kVBase && second < kVBase + kVCount) {
    return kSBase + ((first - kLBase) * kVCount + (second - kVBase)) * kTCount;
  }
  if (first >= kSBase && first < kSBase + kSCount && (first - kSBase) % kTCount == 0 && second > kTBase &&
      second < kTBase + kTCount) {
    return first + (second - kTBase);
  }
  const std::vector<Composition>& rows = unicode_tables().compositions;
  const auto pair_of = [](const Composition& c) { return std::pair(c.first, c.second); };
  const auto row = std::ranges::lower_bound(rows, std::pair(first, second), {}, pair_of);
  return row != rows.end() && pair_of(*row) == std::pair(first, second) ? row->composed : 0;
}

void compose_all(std::vector<char32_t>& text) {
  size_t starter = SIZE_MAX, out = 0;
  uint32_t last_class = 0;  // of the mark kept last since the starter
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t code = text[i];
    const uint32_t mark = combining_class(code);
    const bool blocked =
        starter == SIZE_MAX || (out > starter + 1 && (last_class >= mark || last_class == 0));
    if (!blocked) {
      if (const char32_t joined = compose(text[starter], code); joined != 0) {
        text[starter] = joined;
        continue;
      }
    }
    if (mark == 0) starter = out;
    last_class = mark;
    text[out++] = code;
  }
  text.resize(out);
}

// By combining class; equal classes stay in order.
void sort_marks(std::span<char32_t> marks) {
  if (marks.size() < 2) return;
  const std::vector<char32_t> given(marks.begin(), marks.end());
  const std::vector<uint32_t> order = stable_order(given.size(), [&](uint32_t a, uint32_t b) {
    return combining_class(given[a]) < combining_class(given[b]);
  });
  for (size_t i = 0; i < marks.size(); ++i) marks[i] = given[order[i]];
}

bool is_quick(std::string_view text, NormalForm form) {
  // Below U+0300 everything is NFC; the lead byte of U+0300 is 0xCC. The other forms change U+00A0 and up.
  const unsigned char limit = form == NormalForm::kNfc ? 0xCC : 0x80;
  return std::ranges::all_of(text, [limit](char c) { return static_cast<unsigned char>(c) < limit; });
}

}  // namespace

std::string normalise(std::string_view text, NormalForm form) {
  if (is_quick(text, form)) return std::string(text);
  const bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatibility = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  std::vector<char32_t> run;
  const auto flush = [&]() {
    for (size_t i = 0; i < run.size();) {  // marks between starters, sorted by class
      size_t end = i;
      while (end < run.size() && combining_class(run[end]) != 0) ++end;
      sort_marks(std::span(run).subspan(i, end - i));
      i = std::max(end, i + 1);
    }
    if (composed) compose_all(run);
    for (const char32_t code : run) append_utf8(out, code);
    run.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const DecodedChar c = decode_utf8(text, at);
    if (c.code == kInvalidCodePoint) {
      flush();
      out.push_back(text[at]);
    } else {
      if (c.code < 0x300) flush();  // nothing below U+0300 joins what is before it
      decompose(c.code, compatibility, run);
    }
    at += c.length;
  }
  flush();
  return out;
}

}  // namespace doppler::tokenizer
