// Ids to text while a model generates them: feed() answers whole characters only and keeps the rest, so that
// what is shown or sent never holds half of one. One decoder a sequence.
#pragma once

#include <string>

#include "tokenizer/tokenizer.h"

namespace doppler::tokenizer {

class StreamDecoder {
 public:
  // The tokenizer must outlive the decoder. `at_start` false: the ids continue a text (an answer after a
  // prompt), so that a SentencePiece token's leading space is kept.
  explicit StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options = {}, bool at_start = true)
      : tokenizer_(tokenizer),
        options_(options),
        strip_space_(at_start && tokenizer.strips_leading_space()),
        at_start_(at_start) {}

  // The text that the id completes; may be empty. An id outside of the vocabulary gives none.
  std::string feed(int32_t id);
  // Returns the rest, an incomplete character as U+FFFD. The decoder is then as new.
  std::string flush();

 private:
  std::string take_complete(bool all);

  const Tokenizer& tokenizer_;
  DecodeOptions options_;
  bool strip_space_;
  bool at_start_;
  std::string pending_;  // bytes not yet given out
};

}  // namespace doppler::tokenizer
