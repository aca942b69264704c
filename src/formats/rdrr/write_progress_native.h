// The notes that an interrupted RdrrWriter leaves for the next one: progress.txt in the working folder, a line that
// names the outline (a hash) and one line with the SHA-256 of each shard that is complete. Also keeps other processes
// out, by a lock on that file. Not part of the WebAssembly build.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "formats/rdrr/manifest.h"

namespace doppler::formats {

inline constexpr char kWriteProgressName[] = "progress.txt";

class WriteProgress {
 public:
  // Shards of the same outline and fingerprint that are complete are hashed again and kept; everything else in the
  // folder is removed. Error: another process holds the lock.
  static Result<std::unique_ptr<WriteProgress>> open(const std::string& folder, const RdrrManifest& outline,
                                                     std::string_view fingerprint);
  WriteProgress(const WriteProgress&) = delete;
  WriteProgress& operator=(const WriteProgress&) = delete;

  const std::vector<Sha256>& done() const { return done_; }  // of shards 0, 1, ... as far as complete
  Result<> add(const Sha256& shard);                         // the next shard is on the disk
  Result<> remove();                                         // the file; the lock stays until destruction

 private:
  WriteProgress(std::string path, OpenFile file) : path_(std::move(path)), file_(std::move(file)) {}
  Result<> append(const Sha256& digest);

  std::string path_;
  OpenFile file_;
  std::vector<Sha256> done_;
};

// The names of files and folders, sorted.
Result<std::vector<std::string>> names_in_folder(const std::string& folder);
// Those which are neither the manifest nor named by it.
Result<std::vector<std::string>> files_beside_rdrr_model(const std::string& folder,
                                                         const RdrrManifest& manifest);

}  // namespace doppler::formats
