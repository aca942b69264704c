// Writes GGUF v3 with bounded memory: first every metadata field and tensor is declared, then begin() writes
// the header, then the tensors' data follow in the order declared, in pieces of any size.
//
//   GgufHeader header;  header.add_string("general.architecture", "llama");  header.add_tensor(...);
//   GgufWriter writer(std::move(header), sink);  DP_CHECK(writer.begin());
//   DP_CHECK(writer.write(bytes)); ...           DP_CHECK(writer.finish());
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/sink.h"

namespace doppler::formats {

class GgufHeader {
 public:
  void add_u32(std::string_view key, uint32_t value);
  void add_f32(std::string_view key, float value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  void add_i32s(std::string_view key, std::span<const int32_t> values);
  void add_f32s(std::string_view key, std::span<const float> values);
  void add_bytes(std::string_view key, std::string_view bytes);           // an array of u8
  void add_bools(std::string_view key, std::span<const uint8_t> values);  // 0 or 1 each
  // Every field of `file` as it stands there, byte for byte, but those whose keys are in `without`; also its version
  // and alignment. To be called first.
  void copy_metadata(const GgufFile& file, std::span<const std::string_view> without = {});
  // Shape outermost first; the last dimension must be a multiple of the type's block.
  void add_tensor(std::string name, DType type, std::vector<uint64_t> shape);

  // Offsets count from the start of the file and are valid once every tensor is declared.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  // Header bytes, padded to where the data begins. Fixes the tensors' offsets.
  std::vector<uint8_t> build();
  uint64_t file_bytes() const;  // after build()
  uint64_t alignment() const { return alignment_; }

 private:
  void begin_field(std::string_view key, GgufType type);
  void begin_array(std::string_view key, GgufType element, uint64_t count);

  uint64_t aligned(uint64_t value) const { return (value + alignment_ - 1) / alignment_ * alignment_; }

  uint32_t version_ = 3;
  uint32_t alignment_ = 32;  // the format's default
  std::vector<uint8_t> metadata_;
  uint64_t n_metadata_ = 0;
  std::vector<GgufTensor> tensors_;
};

class GgufWriter {
 public:
  GgufWriter(GgufHeader header, ByteSink& sink) : header_(std::move(header)), sink_(sink) {}

  Result<> begin();
  // The next bytes of the current tensor; may not run into the next tensor. Padding is added by itself.
  Result<> write(std::span<const uint8_t> bytes);
  Result<> finish();  // an error if data is missing

 private:
  GgufHeader header_;
  ByteSink& sink_;
  size_t current_ = 0;    // tensor
  uint64_t written_ = 0;  // of that tensor
};

}  // namespace doppler::formats
