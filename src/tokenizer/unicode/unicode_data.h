// The generated tables of unicode_data.cpp, packed: 18 KB with gzip instead of 46 for the module for browsers. Only
// unicode_tables.cpp reads them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace doppler::tokenizer {

// Column after column, each number as its difference from the one above it: zigzag, then LEB128.
struct PackedTable {
  const uint8_t* bytes;
  size_t size;
  uint32_t rows, columns;
};

extern const char* const kUnicodeVersion;
extern const PackedTable kCategorySteps;   // first code point of a run, category
extern const PackedTable kCombiningSteps;  // first code point of a run, combining class
extern const PackedTable kLowerRuns;       // the members of LowerRun
extern const PackedTable kCompositions;    // the members of Composition
// The members of Decomposition, and the code points that they point to. Compatibility holds only the code points whose
// NFKD differs from their NFD. Hangul syllables are in neither.
extern const PackedTable kCanonical, kCanonicalPool;
extern const PackedTable kCompatibility, kCompatibilityPool;

}  // namespace doppler::tokenizer
