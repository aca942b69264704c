// The tables of Unicode as unicode.cpp and normalise.cpp search them, unpacked from unicode_data.cpp with the first
// use.
#pragma once

#include <cstdint>
#include <vector>

namespace doppler::tokenizer {

struct Step {  // of a run of code points with equal values; the first step starts at 0
  uint32_t first, value;
};
struct LowerRun {  // code points first, first + stride, ... last map to themselves + delta
  uint32_t first, last;
  int32_t stride, delta;
};
struct Composition {  // sorted by (first, second)
  char32_t first, second, composed;
};
struct Decomposition {  // sorted by code; the full decomposition is pool[offset .. offset + length)
  char32_t code;
  uint32_t offset, length;
};
struct Decompositions {
  std::vector<Decomposition> rows;
  std::vector<char32_t> pool;
};

struct UnicodeTables {
  std::vector<Step> categories, combining_classes;
  std::vector<LowerRun> lower_runs;
  std::vector<Composition> compositions;
  Decompositions canonical, compatibility;
};

const UnicodeTables& unicode_tables();

// The value of the run that holds `code`.
uint32_t value_at(const std::vector<Step>& steps, char32_t code);

}  // namespace doppler::tokenizer
