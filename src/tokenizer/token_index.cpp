// Open addressing with linear probing; three quarters full at most.
#include "tokenizer/token_index.h"

#include <bit>

#include "tokenizer/hash.h"

namespace doppler::tokenizer {

void TokenIndex::reset(size_t count) {
  slots_.assign(std::bit_ceil(count + count / 3 + 2), Slot{});
  used_ = 0;
}

void TokenIndex::add(const TextTable& texts, int32_t id) {
  if ((used_ + 1) * 4 > slots_.size() * 3) grow(texts);
  const std::string_view text = texts[static_cast<size_t>(id)];
  const uint64_t hash = hash_text(text);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.id == kAbsent) {
      slot = {tag, id};
      ++used_;
      return;
    }
    if (slot.tag == tag && texts[static_cast<size_t>(slot.id)] == text) return;
  }
}

int32_t TokenIndex::find_hashed(const TextTable& texts, std::string_view text, uint64_t hash) const {
  if (slots_.empty()) return kAbsent;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id == kAbsent) return kAbsent;
    if (slot.tag == tag && texts[static_cast<size_t>(slot.id)] == text) return slot.id;
  }
}

void TokenIndex::grow(const TextTable& texts) {
  std::vector<Slot> old = std::move(slots_);
  reset(old.size());
  for (const Slot& slot : old) {
    if (slot.id != kAbsent) add(texts, slot.id);
  }
}

}  // namespace doppler::tokenizer
