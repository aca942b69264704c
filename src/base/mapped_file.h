// A read-only file in memory through mmap, so that a 70B model costs no host memory beyond what is touched.
// Not part of the WebAssembly build (a browser streams instead).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace doppler {

class MappedFile {
 public:
  // Errors name the path: missing, a folder, empty, unreadable.
  static Result<MappedFile> open(const std::string& path);
  // Several files, one behind the other without a gap: each but the last must have `each` bytes, a multiple of
  // page_bytes(), and the last at most that.
  static Result<MappedFile> open_joined(std::span<const std::string> paths, uint64_t each);
  static uint64_t page_bytes();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  // Tells the system that these bytes will be read once, in order (start) or not again (done).
  void will_read(uint64_t offset, uint64_t count) const;
  void done_with(uint64_t offset, uint64_t count) const;

 private:
  MappedFile(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace doppler
