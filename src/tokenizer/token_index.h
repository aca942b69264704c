// Text -> id, over a TextTable that outlives the index. For equal texts the lowest id is found.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/hash.h"
#include "tokenizer/text_table.h"

namespace doppler::tokenizer {

class TokenIndex {
 public:
  static constexpr int32_t kAbsent = -1;

  // Room for `count` texts; adding more is allowed but slow.
  void reset(size_t count);
  // texts[id] becomes findable unless its text already is.
  void add(const TextTable& texts, int32_t id);
  int32_t find(const TextTable& texts, std::string_view text) const {
    return find_hashed(texts, text, hash_text(text));
  }
  // For many look-ups in a row: prefetch() some steps ahead of find_hashed() hides the waits for memory.
  void prefetch(uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  }
  int32_t find_hashed(const TextTable& texts, std::string_view text, uint64_t hash) const;

 private:
  struct Slot {
    uint32_t tag = 0;  // upper half of the hash
    int32_t id = kAbsent;
  };
  void grow(const TextTable& texts);

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace doppler::tokenizer
