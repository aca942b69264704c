// The places before a space mark (U+2581) at which text may be cut without changing the result of merging: between two
// characters that no token holds side by side. Vocabularies have "▁the" and "▁▁", but hardly ever "e▁"; cutting there
// turns a whole document into words, which can be remembered (piece_cache.h).
#pragma once

#include <string_view>
#include <vector>

#include "tokenizer/normaliser.h"

namespace doppler::tokenizer {

class SpaceMarkCuts {
 public:
  // To be called with every text that merging can make. The byte before a space mark stands for its
  // character: if a token holds the byte there, the cut is not made. (Only safer, and simpler than
  // characters.)
  void add_token(std::string_view text) {
    for (size_t at = text.find(kSpaceMark); at != std::string_view::npos;
         at = text.find(kSpaceMark, at + 1)) {
      if (at > 0) joined_[static_cast<unsigned char>(text[at - 1])] = true;
    }
  }
  bool may_cut(std::string_view text, size_t at) const {
    return at > 0 && !joined_[static_cast<unsigned char>(text[at - 1])];
  }

 private:
  std::vector<bool> joined_ = std::vector<bool>(256, false);
};

}  // namespace doppler::tokenizer
