// The layouts of the generated tables in unicode_data.cpp. Only unicode.cpp and normalise.cpp read them.
// A "step" table holds (first code point << 8 | value) for every run of equal values, sorted; it starts at 0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace doppler::tokenizer {

struct LowerRun {  // code points first, first + stride, ... last map to themselves + delta
  uint32_t first, last;
  int32_t stride, delta;
};
struct Composition {  // sorted by (first, second)
  char32_t first, second, composed;
};
struct Decomposition {  // sorted by code; the full decomposition is pool[offset .. offset + length)
  char32_t code;
  uint16_t offset;
  uint8_t length;
};

extern const char* const kUnicodeVersion;
extern const uint32_t kCategorySteps[];
extern const size_t kCategoryStepsCount;
extern const uint32_t kCombiningSteps[];
extern const size_t kCombiningStepsCount;
extern const LowerRun kLowerRuns[];
extern const size_t kLowerRunsCount;
extern const Composition kCompositions[];
extern const size_t kCompositionsCount;
// Compatibility holds only the code points whose NFKD differs from their NFD. Hangul syllables are in
// neither.
extern const Decomposition kCanonical[];
extern const size_t kCanonicalCount;
extern const char32_t kCanonicalPool[];
extern const size_t kCanonicalPoolCount;
extern const Decomposition kCompatibility[];
extern const size_t kCompatibilityCount;
extern const char32_t kCompatibilityPool[];
extern const size_t kCompatibilityPoolCount;

}  // namespace doppler::tokenizer
