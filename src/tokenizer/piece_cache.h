// Remembers the ids of pieces within one encode() call: running text repeats its words. Direct-mapped: a new
// piece overwrites the one in its slot, so time and memory are bounded whatever the text.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/hash.h"

namespace doppler::tokenizer {

class PieceCache {
 public:
  static constexpr size_t kLongestPiece = 48;    // longer ones hardly repeat
  static constexpr size_t kMostSlots = 1 << 15;  // 512 KiB; more made no difference on 1 MB of English
  static constexpr size_t kMostBytes = 4 << 20;  // of texts and ids; then it starts afresh

  explicit PieceCache(size_t text_bytes)
      : slots_(std::clamp(std::bit_ceil(text_bytes / 8 + 1), size_t{64}, kMostSlots)) {}

  // The slot of a piece: ask get(), then put() what get() did not have.
  size_t slot_of(std::string_view piece) const { return hash_text(piece) & (slots_.size() - 1); }

  bool get(size_t slot, std::string_view piece, std::vector<int32_t>& out) const {
    const Slot& s = slots_[slot];
    if (s.text_length != piece.size() || std::string_view(texts_).substr(s.text, s.text_length) != piece)
      return false;
    out.insert(out.end(), ids_.begin() + s.ids, ids_.begin() + s.ids + s.id_count);
    return true;
  }
  void put(size_t slot, std::string_view piece, std::span<const int32_t> ids) {
    if (texts_.size() + ids_.size() * sizeof(int32_t) > kMostBytes) {
      texts_.clear();
      ids_.clear();
      std::ranges::fill(slots_, Slot{});
    }
    slots_[slot] = {static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(piece.size()),
                    static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(ids.size())};
    texts_.append(piece);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
  }

 private:
  struct Slot {
    uint32_t text = 0, text_length = 0;  // no piece is empty: 0 is a free slot
    uint32_t ids = 0, id_count = 0;
  };
  std::vector<Slot> slots_;
  std::string texts_;
  std::vector<int32_t> ids_;
};

}  // namespace doppler::tokenizer
