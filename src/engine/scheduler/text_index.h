// Whether a text's last tokens stood in it before: what the drafter lookup asks on the GPU (kernels/step/lookup.h), asked
// by the host of the tokens that it knows. Where they did not, steps need no rows for drafts.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace doppler::engine {

class TextIndex {
 public:
  // The next tokens of the text.
  void add(std::span<const uint32_t> tokens);
  // Whether the last kernels::kLeastMatch of them stood before.
  bool repeats() const { return before_ != 0; }
  // What followed them where they stood last, at most so many tokens. Empty: they did not.
  std::vector<uint32_t> drafts(size_t most) const;

 private:
  std::vector<uint32_t> text_;
  // Runs of tokens, hashed: a wrong guess costs a few rows. How many tokens there were when each was seen last.
  std::unordered_map<uint64_t, size_t> seen_;
  size_t before_ = 0;  // of the last run, the time before; 0: never
};

}  // namespace doppler::engine
