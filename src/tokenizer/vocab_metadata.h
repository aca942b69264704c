// A tokenizer from the metadata of a GGUF file ("tokenizer.ggml.*"). This folder may not know the file
// format, so the metadata comes through an interface; engine/vocab_gguf.h has the adapter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/vocab.h"

namespace doppler::tokenizer {

// Each answers empty when the key is absent and an error when the value has another type. Views must stay
// valid until vocab_from_metadata() returns.
class VocabMetadata {
 public:
  virtual ~VocabMetadata() = default;
  virtual Result<std::optional<std::string>> text(std::string_view key) const = 0;
  virtual Result<std::optional<int64_t>> integer(std::string_view key) const = 0;
  virtual Result<std::optional<bool>> boolean(std::string_view key) const = 0;
  virtual Result<std::optional<std::vector<std::string_view>>> texts(std::string_view key) const = 0;
  virtual Result<std::optional<std::vector<double>>> numbers(std::string_view key) const = 0;
  virtual Result<std::optional<std::vector<int64_t>>> integers(std::string_view key) const = 0;
};

// Errors: no vocabulary, an unknown tokenizer model or pre-tokenizer, arrays of unequal length.
Result<VocabSpec> vocab_from_metadata(const VocabMetadata& metadata);

}  // namespace doppler::tokenizer
