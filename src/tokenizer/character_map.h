// SentencePiece's table of what characters become before a text is split ("precompiled_charsmap"): runs of bytes, found by
// a double array (Darts-clone), and their replacements. Of several that begin at a place the longest is replaced; what is
// no UTF-8 becomes U+FFFD. Facts: normalizer.cc of github.com/google/sentencepiece. Hugging Face tokenizers looks within
// groups of characters of up to 5 bytes alone, so that it leaves longer groups of marks and Hangul's letters as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace doppler::tokenizer {

class CharacterMap {
 public:
  // Layout: u32 bytes of the array, the array's u32, then texts that each end with a zero. Errors: cut off; texts without
  // an end. What the array points to is checked where it is followed: outside is no match.
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
