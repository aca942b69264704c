// GGUF v2 and v3, the file format of llama.cpp: a header (metadata, tensor table), then aligned tensor data.
// Only the header is read here, from a prefix of the file, so that a browser can fetch it by ranges.
// Everything is checked: a GgufFile holds no offset, count or shape that leads outside the file. Format:
// github.com/ggml-org/ggml, docs/gguf.md. Read next: gguf_value.h, gguf_writer.h, checkpoint.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "formats/gguf/gguf_value.h"

namespace doppler::formats {

inline constexpr uint32_t kGgufMagic = 0x46554747;                  // "GGUF"
inline constexpr uint64_t kGgufMaxHeaderBytes = uint64_t{1} << 30;  // the largest real ones are about 20 MB
inline constexpr uint64_t kGgufMaxTensors = uint64_t{1} << 20;
inline constexpr uint64_t kGgufMaxNameBytes = 4096;  // of a key or tensor name; ggml allows 64

struct GgufTensor {
  std::string name;
  DType type;
  std::vector<uint64_t> shape;  // outermost first: [n, k] (the file has it the other way round)
  uint64_t offset;              // from the start of the file
  uint64_t bytes;
};

class GgufFile {
 public:
  struct Entry {
    std::string_view key;
    GgufValue value;
  };

  uint32_t version() const { return version_; }
  uint32_t alignment() const { return alignment_; }
  uint64_t data_offset() const { return data_offset_; }
  std::span<const Entry> metadata() const { return metadata_; }  // in file order
  std::span<const GgufTensor> tensors() const { return tensors_; }

  // The metadata fields as they stand in the file, byte for byte.
  std::span<const uint8_t> metadata_bytes() const;
  // A GGUF file of the same version and metadata, byte for byte, with no tensors.
  std::vector<uint8_t> without_tensors() const;

  const GgufValue* find(std::string_view key) const;  // null: absent
  // Empty when absent; an error when present with another type (as base/json.h does).
  Result<std::optional<std::string>> get_string(std::string_view key) const;
  Result<std::optional<int64_t>> get_integer(std::string_view key) const;
  Result<std::optional<double>> get_number(std::string_view key) const;
  Result<std::optional<bool>> get_bool(std::string_view key) const;
  // Views stay valid as long as this GgufFile.
  Result<std::optional<std::vector<std::string_view>>> get_strings(std::string_view key) const;
  Result<std::optional<std::vector<double>>> get_numbers(std::string_view key) const;
  Result<std::optional<std::vector<int64_t>>> get_integers(std::string_view key) const;
  Result<std::optional<std::vector<bool>>> get_bools(std::string_view key) const;

  GgufFile(GgufFile&&) = default;
  GgufFile& operator=(GgufFile&&) = default;

 private:
  friend class GgufParser;
  GgufFile() = default;

  std::vector<uint8_t> header_;  // what the views below point into
  uint64_t metadata_end_ = 0;    // in it
  uint32_t version_ = 0;
  uint32_t alignment_ = 32;
  uint64_t data_offset_ = 0;
  std::vector<Entry> metadata_;
  std::unordered_map<std::string_view, size_t> index_;
  std::vector<GgufTensor> tensors_;
};

// The result of parse_gguf(): the file, or the length of the prefix (more than was given, at most the file) to offer
// next.
struct GgufParse {
  std::optional<GgufFile> file;
  uint64_t bytes_wanted = 0;
};

// `prefix` is the beginning of a file of file_size bytes, or the whole file. `name` is for messages.
Result<GgufParse> parse_gguf(std::span<const uint8_t> prefix, uint64_t file_size, std::string_view name);

}  // namespace doppler::formats
