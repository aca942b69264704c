// The splits of a GGUF file's `tokenizer.ggml.pre`, a name for what tokenizer.json spells out. Patterns are
// those of the models' publishers.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"

namespace doppler::tokenizer {

// The pattern that ByteLevel of tokenizer.json splits by (use_regex).
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct PreTokenizer {
  const char* name;
  std::span<const char* const> patterns;
  bool ignore_merges;
  bool adds_bos;  // unless the file says otherwise
};

// An unknown name is an error that lists the known ones.
Result<PreTokenizer> pre_tokenizer(std::string_view name);

}  // namespace doppler::tokenizer
