// Grammars over the tokens of one model: which tokens may be next, token by token. Compiling takes about a millisecond
// and is remembered; a mask takes about ten microseconds, rarely milliseconds. Read next: library.h.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doppler/doppler.h"
#include "guidance/library.h"

namespace doppler::guidance {

// The texts that a model's tokens spell, by id.
struct Vocabulary {
  std::vector<std::string> tokens;  // bytes; empty: never allowed
  std::vector<bool> is_control;     // it stands for no text
  std::vector<uint32_t> ends;       // tokens that end an answer, at least one
  // Tokenizes a text as the model learnt to write it. Any thread may call it. Empty: the way is unknown, and no text is
  // forced.
  std::function<std::vector<uint32_t>(std::string_view)> tokenize = {};
};

class Spelling;  // guides.cpp

// An answer on its way through a grammar. One thread at a time.
class Matcher {
 public:
  // Bit t % 32 of word t / 32: token t may be next. The ends are set only if no other token may be next.
  Result<std::vector<uint32_t>> allowed();
  // The tokens that must follow, whatever is chosen: if a grammar leaves one text, it is written as the model learnt
  // to, and allowed() has only the first token. Often there is none.
  Result<std::vector<uint32_t>> forced();
  // Takes the next token, one that ends no answer. Error: the token is not allowed.
  Result<void> accept(uint32_t token);
  // Another one that stands where this one does.
  Matcher clone() const;

 private:
  friend class Guides;
  Matcher(const Library& library, std::shared_ptr<const Spelling> spelling,
          std::shared_ptr<LlgTokenizer> tokenizer, bool ends_numbers, LlgMatcher* matcher)
      : library_(&library),
        spelling_(std::move(spelling)),
        tokenizer_(std::move(tokenizer)),
        ends_numbers_(ends_numbers),
        matcher_(matcher, library.free_matcher) {}
  Unexpected failure(ErrorKind kind) const;

  const Library* library_;
  std::shared_ptr<const Spelling> spelling_;
  std::shared_ptr<LlgTokenizer> tokenizer_;  // outlives the matcher
  bool ends_numbers_ = false;                // of JSON: digits do not go on for ever
  size_t digits_ = 0;                        // at the end of what was accepted
  std::unique_ptr<LlgMatcher, void (*)(LlgMatcher*)> matcher_;
};

// Any thread.
class Guides {
 public:
  // Error: the library is not there, or does not take the vocabulary.
  static Result<std::unique_ptr<Guides>> create(const Vocabulary& vocabulary);

  // A matcher at the beginning of an answer. Errors: the grammar cannot be read, or asks for what cannot be honoured.
  Result<Matcher> begin(const Grammar& grammar);

 private:
  struct Compiled {
    Grammar grammar;
    Matcher matcher;  // never moved on: others begin as copies
  };
  Guides(const Library& library, std::shared_ptr<const Spelling> spelling,
         std::shared_ptr<LlgTokenizer> tokenizer)
      : library_(library), spelling_(std::move(spelling)), tokenizer_(std::move(tokenizer)) {}
  Result<Matcher> compile(const Grammar& grammar) const;

  const Library& library_;
  const std::shared_ptr<const Spelling> spelling_;  // which the tokenizer asks
  const std::shared_ptr<LlgTokenizer> tokenizer_;
  std::mutex mutex_;
  std::list<Compiled> compiled_;  // the newest first
};

}  // namespace doppler::guidance
