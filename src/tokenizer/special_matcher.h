// Finds added tokens in a text: at every place the longest one, from left to right.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/vocab.h"

namespace doppler::tokenizer {

class SpecialMatcher {
 public:
  // `tokens` outlives the matcher. Without `with_special` special tokens are not found.
  SpecialMatcher(const std::vector<AddedToken>& tokens, bool with_special);

  struct Match {
    size_t begin, end;  // with the white space that lstrip and rstrip take
    const AddedToken* token;
  };
  // The first match at or after `from`; null token: none.
  Match find(std::string_view text, size_t from) const;

 private:
  const AddedToken* longest_at(std::string_view text, size_t at) const;

  std::vector<const AddedToken*> sorted_;  // by text
  // Tokens whose text begins with byte b: sorted_[first_[b] .. first_[b + 1])
  std::vector<uint32_t> first_;
};

}  // namespace doppler::tokenizer
