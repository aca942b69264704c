// A grammar of the tests: tokens differ from the last one modulo 5.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/scheduler/guide.h"

namespace doppler {

class Residues final : public engine::Guide {
 public:
  explicit Residues(uint32_t vocab_size) : vocab_size_(vocab_size) {}
  Result<std::vector<uint32_t>> allowed() override {
    std::vector<uint32_t> mask((vocab_size_ + 31) / 32);
    for (uint32_t token = 0; token < vocab_size_; ++token)
      if (token % 5 != last_ % 5) mask[token / 32] |= 1u << token % 32;
    return mask;
  }
  Result<bool> accept(uint32_t token) override {
    EXPECT_NE(token % 5, last_ % 5);
    last_ = token;
    return true;
  }
  std::unique_ptr<engine::Guide> clone() const override { return std::make_unique<Residues>(*this); }

 private:
  uint32_t vocab_size_, last_ = 4;
};

}  // namespace doppler
