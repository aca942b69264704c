// Byte-pair merging of one piece: again and again the neighbouring pair of the lowest rank, leftmost first,
// becomes one symbol. Short pieces by scanning, long ones with a heap: O(n log n), so that a megabyte of one
// letter is fine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tokenizer/pair_table.h"

namespace doppler::tokenizer {

struct Symbol {
  uint32_t begin, length;  // bytes of the piece
  int32_t id;
};

// Best of 8 to 128 on mixed English text with the Llama 3 vocabulary: scanning wins while a row of ranks
// stays in the first cache lines.
inline constexpr size_t kScanUpTo = 48;

template <class Lookup>  // Merge lookup(const Symbol& left, const Symbol& right)
void merge_short(std::vector<Symbol>& symbols, const Lookup& lookup) {
  Merge merges[kScanUpTo];  // merges[i]: of symbols i and i + 1
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = lookup(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (!merges[best].possible()) break;
    symbols[best].length += symbols[best + 1].length;
    symbols[best].id = merges[best].id;
    std::copy(symbols.begin() + static_cast<ptrdiff_t>(best) + 2,
              symbols.begin() + static_cast<ptrdiff_t>(count),
              symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    std::copy(merges + best + 1, merges + count - 1, merges + best);
    --count;
    if (best > 0) merges[best - 1] = lookup(symbols[best - 1], symbols[best]);
    if (best + 1 < count) merges[best] = lookup(symbols[best], symbols[best + 1]);
  }
  symbols.resize(count);
}

template <class Lookup>
void merge_long(std::vector<Symbol>& symbols, const Lookup& lookup) {
  struct Pair {
    uint32_t rank, left, right, length;
    int32_t id;
    bool operator<(const Pair& o) const {
      return rank != o.rank ? rank > o.rank : left > o.left;
    }  // best on top
  };
  constexpr uint32_t kNone = UINT32_MAX;
  const auto count = static_cast<uint32_t>(symbols.size());
  std::vector<uint32_t> before(count), after(count);
  std::vector<Pair> heap;
  heap.reserve(count);
  const auto consider = [&](uint32_t left, uint32_t right, bool sift) {
    const Merge merge = lookup(symbols[left], symbols[right]);
    if (!merge.possible()) return;
    heap.push_back({merge.rank, left, right, symbols[left].length + symbols[right].length, merge.id});
    if (sift) std::push_heap(heap.begin(), heap.end());
  };
  for (uint32_t i = 0; i < count; ++i) {
    before[i] = i == 0 ? kNone : i - 1;
    after[i] = i + 1 == count ? kNone : i + 1;
    if (i + 1 < count) consider(i, i + 1, false);
  }
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Pair pair = heap.back();
    heap.pop_back();
    Symbol& left = symbols[pair.left];
    Symbol& right = symbols[pair.right];
    // A symbol that was merged away has length 0; one that has grown no longer adds up.
    if (left.length == 0 || right.length == 0 || left.length + right.length != pair.length) continue;
    left.length = pair.length;
    left.id = pair.id;
    right.length = 0;
    after[pair.left] = after[pair.right];
    if (after[pair.left] != kNone) {
      before[after[pair.left]] = pair.left;
      consider(pair.left, after[pair.left], true);
    }
    if (before[pair.left] != kNone) consider(before[pair.left], pair.left, true);
  }
  std::erase_if(symbols, [](const Symbol& s) { return s.length == 0; });
}

template <class Lookup>
void merge_symbols(std::vector<Symbol>& symbols, const Lookup& lookup) {
  if (symbols.size() <= kScanUpTo) {
    merge_short(symbols, lookup);
  } else {
    merge_long(symbols, lookup);
  }
}

}  // namespace doppler::tokenizer
