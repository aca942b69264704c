// The first part of the pipeline: a text becomes the text that is split and merged. Steps are data (vocab.h).
// Read next: splitter.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizer/character_map.h"
#include "tokenizer/regex/regex.h"
#include "tokenizer/vocab.h"

namespace doppler::tokenizer {

// The three bytes of U+2581, which stands for a space inside the tokens of SentencePiece.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

class Normaliser {
 public:
  static Result<Normaliser> create(std::vector<NormaliserStep> steps);
  bool empty() const { return steps_.empty(); }
  // `at_start`: nothing was before the text, not even a special token.
  std::string apply(std::string_view text, bool at_start) const;

 private:
  std::vector<NormaliserStep> steps_;
  std::vector<std::unique_ptr<Regex>> patterns_;     // one a step; null unless kReplacePattern
  std::vector<std::unique_ptr<CharacterMap>> maps_;  // one a step; null unless kCharacterMap
};

}  // namespace doppler::tokenizer
