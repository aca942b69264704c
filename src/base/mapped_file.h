// A read-only file in memory as the system maps it, so that a 70B model costs no host memory beyond what is touched.
// Not part of the WebAssembly build (a browser streams instead).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace doppler {

struct WatchedRange;  // cut_files_posix.h

class MappedFile {
 public:
  // Errors name the path: missing, a folder, empty, unreadable.
  static Result<MappedFile> open(const std::string& path);
  // Joins several files, one after the other without a gap. Each but the last must have `each` bytes, a multiple of
  // page_bytes(), and the last at most that.
  static Result<MappedFile> open_joined(std::span<const std::string> paths, uint64_t each);
  static uint64_t page_bytes();
  static bool can_join();  // false: this system cannot map files beside each other
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // If a file is cut meanwhile, the missing part reads as zeros; check_whole() reports it.
  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  // Error: a file was cut since it was opened. With several files this is found only for the parts of bytes() that were
  // read.
  Result<> check_whole() const;
  // Tells the system that these bytes will be read once, in order (start) or not again (done).
  void will_read(uint64_t offset, uint64_t count) const;
  void done_with(uint64_t offset, uint64_t count) const;

 private:
  MappedFile(std::string name, const uint8_t* data, size_t size);
  std::string name_;  // for messages
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  WatchedRange* watched_ = nullptr;
  uint64_t device_ = 0, inode_ = 0;  // of a single file
};

}  // namespace doppler
