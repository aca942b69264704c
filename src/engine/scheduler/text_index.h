// Whether a text's last tokens stood in it before: what the drafter lookup asks on the GPU (kernels/step/lookup.h), asked
// by the host of the tokens that it knows. Where they did not, steps need no rows for drafts.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>

namespace doppler::engine {

class TextIndex {
 public:
  // The next tokens of the text.
  void add(std::span<const uint32_t> tokens);
  size_t size() const { return size_; }
  // Whether the last kernels::kLeastMatch of them stood before.
  bool repeats() const { return repeats_; }

 private:
  std::unordered_set<uint64_t> seen_;  // runs of tokens, hashed: a wrong guess costs a few rows
  uint64_t last_[2] = {};              // tokens, the newest first
  size_t size_ = 0;
  bool repeats_ = false;
};

}  // namespace doppler::engine
