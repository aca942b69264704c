// SentencePiece's table of characters and their replacements before a text is split ("precompiled_charsmap"). A double
// array (Darts-clone) finds runs of bytes. If several begin at one place, the longest is replaced; bytes that are not
// UTF-8 become U+FFFD. Facts: normalizer.cc of github.com/google/sentencepiece. Hugging Face tokenizers looks only
// within groups of characters of up to 5 bytes, so it does not change longer groups of marks and Hangul's letters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace doppler::tokenizer {

class CharacterMap {
 public:
  // Layout: u32 bytes of the array, the array's u32, then texts that each end with a zero. Errors: cut off; texts
  // without an end. An offset in the array is checked when it is followed: one that leads outside is no match.
  static Result<CharacterMap> create(std::string_view bytes);
  std::string apply(std::string_view text) const;

 private:
  struct Match {
    size_t length = 0;  // of the text; 0: none
    std::string_view replacement;
  };
  Match longest(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace doppler::tokenizer
