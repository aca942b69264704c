// Whether a text's last tokens stood in it before. The drafter lookup asks so on the GPU (kernels/step/lookup.h); here
// the host asks, of the tokens that it knows. Where they did not, steps need no rows for drafts.
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
  // The tokens after the place where they stood last, at most so many. Empty: they did not.
  std::vector<uint32_t> drafts(size_t most) const;

 private:
  std::vector<uint32_t> text_;
  // Runs of tokens, hashed: a wrong guess costs a few rows. The value is the text's length when the run was seen last.
  std::unordered_map<uint64_t, size_t> seen_;
  size_t before_ = 0;  // of the last run, the time before; 0: never
};

}  // namespace doppler::engine
