// The keys of one architecture in a GGUF file, "<architecture>.<key>", with the range checks that sizes need: for the
// general reader (read_gguf.cpp) and for the readers of families' own keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/gguf/gguf.h"

namespace doppler::formats {

// Errors name the key, what it holds and what is allowed.
class GgufKeys {
 public:
  // `prefix` ends in a dot.
  GgufKeys(const GgufFile& gguf, std::string prefix) : gguf_(gguf), prefix_(std::move(prefix)) {}

  Result<std::optional<uint32_t>> count(const char* key) const;  // empty: absent
  Result<uint32_t> required(const char* key) const;
  Result<std::vector<uint32_t>> counts(const char* key) const;  // a list, or a single number; empty: absent
  Result<double> number(const char* key, double otherwise) const;
  Result<bool> truth(const char* key, bool otherwise) const;
  Result<std::string> text(const char* key) const;             // empty: absent
  Result<std::vector<double>> numbers(const char* key) const;  // empty: absent
  // The key has no prefix. Empty: absent.
  Result<std::vector<double>> global_numbers(const char* key) const;
  // A list of truths, or of numbers that are 0 or not. Empty: absent or no list.
  std::vector<uint8_t> flags(const char* key) const;

 private:
  const GgufFile& gguf_;
  std::string prefix_;
};

}  // namespace doppler::formats
