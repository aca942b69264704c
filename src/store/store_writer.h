// The way of a model into the store: everything is made in <name>.part/ and the folder renamed at the end, so that
// nothing half is ever found under a model's name. While the folder exists it has:
//   <name>.part/pull.json                   what is being fetched: the source, and size and hash of each file if known
//   <name>.part/<file>.part, .journal       a file, and its bytes so far (download.h)
//   <name>.part/doppler.json                only once every file is complete: then nothing but renaming is left
//   <name>.part/lock                        held by the process that works on it
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/files.h"
#include "store/model_store.h"

namespace doppler::store {

struct ListedFile {
  std::string file;               // its name in the store; may have a folder: "1_Pooling/config.json"
  std::string from;               // an address, or a path; empty: only the peers have it
  std::optional<uint64_t> bytes;  // as far as the source tells
  std::optional<Sha256> sha256;
};

struct DownloadList {
  std::string name;
  std::string source, revision, kind, entry;  // of the record
  bool is_local = false;
  std::vector<ListedFile> files;
};

class StoreWriter {
 public:
  // Goes on with <name>.part if it is of the same source. Errors: another source, another process, a file name
  // that a store cannot have.
  static Result<StoreWriter> open(const ModelStore& store, const DownloadList& list);

  std::string path_of(const std::string& file) const { return folder_ + "/" + file; }
  // All files are there as <file>.part. `replace`: a model that has the name goes away.
  Result<StoredModel> finish(std::vector<StoredFile> files, bool replace);
  Result<void> discard();  // what is there turned out to be no model

 private:
  StoreWriter(const ModelStore& store, const DownloadList& list, std::string folder, File lock)
      : store_(store), list_(list), folder_(std::move(folder)), lock_(std::move(lock)) {}
  const ModelStore& store_;
  const DownloadList& list_;
  std::string folder_;
  File lock_;
};

// Completes a finish() that was killed. False: there is none.
Result<bool> finish_remains(const ModelStore& store, const std::string& name);

// Empty: <name>.part is not there or none of ours.
std::optional<UnfinishedModel> read_unfinished(const std::string& store_folder, const std::string& name);
Result<File> lock_unfinished(const std::string& folder, const std::string& name);
// Bytes a file takes on the disk, without its holes; 0: there is none.
uint64_t disk_bytes(const std::string& path);

}  // namespace doppler::store
