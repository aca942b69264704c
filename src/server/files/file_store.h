// Files of clients, by id: the storage of /v1/files. The bytes of a file lie under its id, its record under "ID.json",
// so that a named folder keeps its files over a restart. Read next: batches.h (their use).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/files/private_folder.h"

namespace doppler::server {

struct StoredFile {
  std::string id, filename, purpose;
  uint64_t bytes = 0;
  int64_t created = 0;  // seconds since 1970
  Json json() const;    // as OpenAI's API tells it
};

// Any thread.
class FileStore {
 public:
  static constexpr size_t kMostFiles = 10'000;

  // `most_bytes`: of all files together.
  static std::unique_ptr<FileStore> open(std::unique_ptr<PrivateFolder> folder, uint64_t most_bytes);

  // Errors: kOutOfMemory: there is no room left; kIo.
  Result<StoredFile> put(std::string_view content, const std::string& filename, const std::string& purpose);
  // Takes a file that lies in the folder under `name`. There is always room for it: its work is done.
  Result<StoredFile> adopt(const std::string& name, const std::string& filename, const std::string& purpose);
  Result<void> check_room(uint64_t bytes) const;
  std::optional<StoredFile> get(const std::string& id) const;
  std::vector<StoredFile> list() const;  // the oldest first
  bool remove(const std::string& id);
  std::string path_of(const StoredFile& file) const { return folder_->path_of(file.id); }
  PrivateFolder& folder() const { return *folder_; }

 private:
  FileStore(std::unique_ptr<PrivateFolder> folder, uint64_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  void read_earlier();
  Result<StoredFile> add(StoredFile file);
  uint64_t bytes() const;  // under the mutex

  const std::unique_ptr<PrivateFolder> folder_;
  const uint64_t most_bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, StoredFile> files_;  // ids are in the order of time
};

}  // namespace doppler::server
