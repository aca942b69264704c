// Files that are wrong on purpose, each with a piece of the sentence it must give (empty: it must be read).
// corpus_test.cpp replays them; tests/fuzz/ holds the same bytes as seeds for the fuzz targets (see there how
// they are written). A new case is a new row in corpus_cases.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace doppler::formats {

struct CorpusCase {
  std::string name;
  std::vector<uint8_t> bytes;
  std::string sentence;
};

std::vector<CorpusCase> gguf_cases();
std::vector<CorpusCase> safetensors_cases();
std::vector<CorpusCase> index_cases();

}  // namespace doppler::formats
