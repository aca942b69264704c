// A rule for a generation's tokens, asked token by token: a grammar, which the scheduler knows nothing about.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"

namespace doppler::engine {

// The guide of one generation. It belongs to the scheduler's thread once its request is submitted.
class Guide {
 public:
  virtual ~Guide() = default;
  // The tokens that may be next, bit t % 32 of word t / 32 for token t. At least one.
  virtual Result<std::vector<uint32_t>> allowed() = 0;
  // The tokens that must follow whatever is chosen, in order; often none. accept() takes them as it takes others.
  virtual Result<std::vector<uint32_t>> forced() { return std::vector<uint32_t>(); }
  // Takes the next token. false: it is an end token, the text is whole.
  virtual Result<bool> accept(uint32_t token) = 0;
  // Copies the guide with its state, to look ahead. Null: the sequence has no drafts.
  virtual std::unique_ptr<Guide> clone() const { return nullptr; }
};

}  // namespace doppler::engine
