// safetensors: 8 bytes of header length, a JSON header that names each tensor's type, shape and place, then
// the data. Only the header is read here, from a prefix of the file; everything in it is checked, so no
// tensor lies outside the file or over another. Format: github.com/huggingface/safetensors, README. Read
// next: safetensors_index.h (several files), safetensors_writer.h, checkpoint.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace doppler::formats {

inline constexpr uint64_t kSafetensorsMaxHeaderBytes = 100'000'000;  // the reference implementation's limit
inline constexpr uint64_t kSafetensorsMaxDims = 8;

struct SafetensorsTensor {
  std::string name;
  DType type;
  std::vector<uint64_t> shape;  // outermost first; empty for a single number
  uint64_t offset;              // from the start of the file
  uint64_t bytes;
};

struct SafetensorsFile {
  std::vector<SafetensorsTensor> tensors;                     // in header order
  std::vector<std::pair<std::string, std::string>> metadata;  // "__metadata__"
};

// The number of bytes, from the start of a file of file_size bytes, that parse_safetensors() needs. `first8`
// are its first 8 bytes.
Result<uint64_t> safetensors_header_bytes(std::span<const uint8_t> first8, uint64_t file_size,
                                          std::string_view name);

// `prefix` holds at least safetensors_header_bytes(); `name` is for messages.
Result<SafetensorsFile> parse_safetensors(std::span<const uint8_t> prefix, uint64_t file_size,
                                          std::string_view name);

}  // namespace doppler::formats
