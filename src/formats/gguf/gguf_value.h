// One metadata value of a GGUF file: a view into the header bytes that GgufFile owns. Arrays stay packed as
// they are in the file; arrays of strings get a table of offsets, so a vocabulary of 256k tokens costs 1 MB
// and a few milliseconds. Read next: gguf.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace doppler::formats {

enum class GgufType : uint32_t {  // ids as in the file
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
inline constexpr uint32_t kGgufTypeCount = 13;

const char* gguf_type_name(GgufType type);  // "u32", "string", "array"
// Bytes of one number; 0 for strings and arrays.
uint32_t gguf_type_bytes(GgufType type);

class GgufValue {
 public:
  // `data` points at the number, or at the first array element, or at the text of a string.
  GgufValue(GgufType type, GgufType element, uint64_t count, const uint8_t* data)
      : type_(type), element_(element), count_(count), data_(data) {}

  GgufType type() const { return type_; }
  bool is_array() const { return type_ == GgufType::kArray; }
  GgufType element_type() const { return element_; }  // equals type() unless an array
  uint64_t count() const { return is_array() ? count_ : 1; }

  // Empty when the value (or element i of the array) is of another type or does not fit.
  std::optional<int64_t> integer(uint64_t i = 0) const;  // any integer type
  std::optional<double> number(uint64_t i = 0) const;    // any integer or float type
  std::optional<bool> boolean(uint64_t i = 0) const;
  std::optional<std::string_view> string(uint64_t i = 0) const;

  void set_string_offsets(std::vector<uint32_t> offsets) { offsets_ = std::move(offsets); }
  void rebase(const uint8_t* from, const uint8_t* to) { data_ = to + (data_ - from); }  // the bytes moved

 private:
  GgufType type_, element_;
  uint64_t count_;  // elements of an array; bytes of a string
  const uint8_t* data_;
  std::vector<uint32_t> offsets_;  // of each string's 8-byte length, from data_
};

}  // namespace doppler::formats
