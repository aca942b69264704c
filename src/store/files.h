// The few system calls on files that the store needs, with sentences instead of errno.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace doppler::store {

// "Cannot <verb> <path>: <what errno says>." A full disk and a file that is too large have their own words.
Unexpected fail_errno(const char* verb, const std::string& path);

class File {
 public:
  static Result<File> open(const std::string& path, int flags);  // open(2); files are made with 0644
  static Result<File> open_at(const File& folder, const std::string& name, int flags);
  File(File&& other) noexcept : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}
  File& operator=(File&& other) noexcept {
    std::swap(file_, other.file_);
    path_.swap(other.path_);
    return *this;
  }
  ~File();

  int number() const { return file_; }
  int release() { return std::exchange(file_, -1); }  // the caller closes it
  const std::string& path() const { return path_; }
  Result<uint64_t> size() const;
  Result<void> resize(uint64_t bytes);
  Result<void> write_at(std::span<const uint8_t> bytes, uint64_t offset);
  Result<size_t> read_at(std::span<uint8_t> bytes, uint64_t offset) const;  // less only at the end
  Result<File> duplicate() const;                                           // of the same open file
  Result<void> flush();                                                     // to the disk

 private:
  File(int file, std::string path) : file_(file), path_(std::move(path)) {}
  int file_;
  std::string path_;
};

// Empty: it cannot be read, or is larger than a megabyte.
std::optional<std::string> read_small_file(const std::string& path);
// To a temporary name, flushed, renamed.
Result<void> write_small_file(const std::string& path, std::string_view text);
Result<void> flush_folder(const std::string& path);  // so that a rename in it survives a power cut
Result<void> rename_path(const std::string& from, const std::string& to);
Result<void> remove_tree(const std::string& path);  // nothing there is no error; links are not followed
Result<void> make_folders(const std::string& path);
// Bytes that this user may still write there.
Result<uint64_t> free_bytes(const std::string& folder);

// A lock that ends with the process. Error (with `busy` as its sentence): another process has it.
Result<File> lock_file(const std::string& path, const std::string& busy);

}  // namespace doppler::store
