// A bounds-checked cursor over little-endian bytes. A read past the end returns false and leaves a note of
// how many bytes would have been needed, so that a header can be parsed from a prefix and asked for again,
// longer.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace doppler::formats {

static_assert(std::endian::native == std::endian::little, "GGUF and safetensors are read in place");

template <class T>
T load_le(const uint8_t* bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
void store_le(uint8_t* bytes, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(bytes, &value, sizeof value);
}

class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t needed() const { return needed_; }  // total bytes that the failed read wanted

  bool skip(uint64_t count) {
    if (count > bytes_.size() - position_) {
      needed_ = count > UINT64_MAX - position_ ? UINT64_MAX : position_ + count;
      return false;
    }
    position_ += count;
    return true;
  }
  template <class T>
  bool read(T& value) {
    const uint64_t at = position_;
    if (!skip(sizeof(T))) return false;
    value = load_le<T>(bytes_.data() + at);
    return true;
  }
  // A view into the bytes, not a copy.
  bool read(std::string_view& text, uint64_t length) {
    const uint64_t at = position_;
    if (!skip(length)) return false;
    text = {reinterpret_cast<const char*>(bytes_.data() + at), static_cast<size_t>(length)};
    return true;
  }

 private:
  std::span<const uint8_t> bytes_;
  uint64_t position_ = 0;
  uint64_t needed_ = 0;
};

}  // namespace doppler::formats
