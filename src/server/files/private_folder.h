// A folder that only this server writes to and only its user may read. Names in it are ours, never a client's. Read
// next: file_store.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace doppler::server {

class PrivateFolder {
 public:
  // Makes the folder if it does not exist. Empty path: one of a name of its own that is removed at the end. Errors:
  // another server uses it, others may read it, or it cannot be made.
  static Result<std::unique_ptr<PrivateFolder>> open(const std::string& path);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  std::vector<std::string> names() const;
  // Writes the whole file or nothing, even if the power fails.
  Result<void> write(const std::string& name, std::string_view bytes) const;
  Result<void> rename(const std::string& from, const std::string& to) const;
  void remove(const std::string& name) const;  // if it is there

 private:
  PrivateFolder(std::string path, bool is_temporary, OpenFile lock)
      : path_(std::move(path)), is_temporary_(is_temporary), lock_(std::move(lock)) {}

  const std::string path_;
  const bool is_temporary_;
  OpenFile lock_;  // a file that is locked as long as the folder is used
};

// "file-0197...": the prefix, the time in milliseconds, so that ids are in order, and 48 random bits.
std::string new_id(const char* prefix);

}  // namespace doppler::server
