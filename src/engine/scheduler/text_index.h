// The host's view of the drafter lookup (kernels/step/lookup.h). It says whether the last tokens of a text stood in it
// before, and how many tokens a guess from there would have got right. Neither takes a step with drafts.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace doppler::engine {

struct Guesses {
  uint32_t right = 0, wrong = 0;
};

class TextIndex {
 public:
  // Appends the next tokens of the text. Returns the number of guesses that they prove right or wrong.
  Guesses add(std::span<const uint32_t> tokens);
  // Says whether the last kernels::kLeastMatch tokens stood before.
  bool repeats() const { return before_ != 0; }
  // Gives at most `most` tokens that followed the last place where these stood. Empty: they did not stand before.
  std::vector<uint32_t> drafts(size_t most) const;

 private:
  std::vector<uint32_t> text_;
  // Hashes of runs of tokens, and the text's length when each run was seen last. A collision costs only a few rows.
  std::unordered_map<uint64_t, size_t> seen_;
  size_t before_ = 0;  // the length when the last run was seen before; 0: never
  size_t guess_ = 0;   // the place of the token that is expected next; 0: there is no guess
};

}  // namespace doppler::engine
