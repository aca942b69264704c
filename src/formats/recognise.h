// The kind of file that its first bytes suggest, for the sentence when it is not a model.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace doppler::formats {

inline constexpr uint64_t kRecogniseBytes = 512;

enum class FileLook { kGguf, kSafetensors, kKnownOther, kUnknown };

struct Recognised {
  FileLook look;
  std::string
      reason;  // of kKnownOther: "a Git LFS pointer, not the file itself: run \"git lfs pull\" in its folder"
};
Recognised recognise(std::span<const uint8_t> first_bytes, uint64_t file_size);

}  // namespace doppler::formats
