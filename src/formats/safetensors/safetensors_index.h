// model.safetensors.index.json: which of several safetensors files holds which tensor.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace doppler::formats {

inline constexpr const char kSafetensorsIndexName[] = "model.safetensors.index.json";
inline constexpr uint64_t kMaxShards = 4096;

struct SafetensorsIndex {
  std::vector<std::string> files;                        // each once, in order of first mention
  std::unordered_map<std::string, uint32_t> weight_map;  // tensor name -> number in `files`
};

// File names that could leave the folder are refused.
Result<SafetensorsIndex> parse_safetensors_index(std::string_view json, std::string_view name);

}  // namespace doppler::formats
