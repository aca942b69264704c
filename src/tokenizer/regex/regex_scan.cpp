// Walks the table of a compiled pattern over a text (regex.h, regex_compile.cpp).
#include <algorithm>

#include "tokenizer/regex/regex.h"

namespace doppler::tokenizer {

size_t RegexScan::match_at(size_t begin) {
  uint32_t state = Regex::kStart;
  size_t at = begin, end = begin;
  auto dead = std::ranges::lower_bound(dead_, at, {}, &Visit::at);
  visits_.clear();
  for (;;) {
    while (dead != dead_.end() && dead->at < at) ++dead;
    if (dead != dead_.end() && dead->at == at && dead->state == state) break;
    visits_.push_back({at, state});
    uint32_t length = 0, char_class = 0;
    if (at == text_.size()) {
      char_class = regex_.class_count_ - 1;
    } else if (const auto byte = static_cast<unsigned char>(text_[at]); byte < 0x80) {
      char_class = regex_.ascii_classes_[byte];
      length = 1;
    } else {
      const DecodedChar c = decode_utf8(text_, at);
      char_class = regex_.class_of(c.code);
      length = c.length;
    }
    const uint32_t entry = regex_.transition(state, char_class);
    if ((entry & 1) != 0) {
      end = at;
      visits_.clear();  // a match came after them
    }
    state = entry >> 1;
    if (state == 0) break;
    at += length;
  }
  // Short readings past the match are cheaper to repeat than to remember.
  constexpr size_t kRemember = 16;
  if (visits_.size() >= kRemember) dead_.swap(visits_);
  return end;
}

bool RegexScan::next(size_t& begin, size_t& end) {
  while (at_ < text_.size()) {
    begin = at_;
    end = match_at(begin);
    if (end > begin) {
      at_ = end;
      return true;
    }
    at_ += decode_utf8(text_, at_).length;
  }
  return false;
}

}  // namespace doppler::tokenizer
