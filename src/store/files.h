// The few calls on files (base/file.h) that the store needs, with sentences instead of errno.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"

namespace doppler::store {

// "Cannot <verb> <path>: <what errno says>." A full disk and a file that is too large have their own words.
Unexpected fail_errno(const char* verb, const std::string& path);

class File {
 public:
  static Result<File> open(const std::string& path, const OpenMode& mode = kToRead);
  static Result<File> open_at(const File& folder, const std::string& name, const OpenMode& mode);

  int release_descriptor() { return file_.release_descriptor(); }  // the caller closes it
  const std::string& path() const { return path_; }
  Result<FileFacts> facts() const;
  Result<uint64_t> size() const;
  Result<void> resize(uint64_t bytes);
  Result<void> write_at(std::span<const uint8_t> bytes, uint64_t offset);
  Result<size_t> read_at(std::span<uint8_t> bytes, uint64_t offset) const;  // less only at the end
  Result<File> duplicate() const;                                           // of the same open file
  Result<void> flush();                                                     // to the disk

 private:
  File(OpenFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  friend Result<File> lock_file(const std::string& path, const std::string& busy);
  OpenFile file_;
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
