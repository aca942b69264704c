// The folder where models are kept, and what stands in it. docs/design/store.md describes the layout; in short:
//   <store>/<name>/doppler.json      the record: source, files with sizes and hashes, which file to load
//   <store>/<name>/<files>           complete and checked; nothing else ever has this name
//   <store>/<name>.part/             a download that is not finished (store_writer.h)
// Read next: store_writer.h, pull.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "base/sha256.h"

namespace doppler::store {

inline constexpr char kRecordName[] = "doppler.json";
inline constexpr char kUnfinishedSuffix[] = ".part";

struct StoredFile {
  std::string file;  // "config.json", "1_Pooling/config.json"
  uint64_t bytes = 0;
  Sha256 sha256{};
  bool is_verified = false;  // against a hash from the source
};

struct Record {
  std::string source;    // as given to pull, without secrets: an address, "org/name:file@revision", a path
  std::string revision;  // commit of a Hugging Face repository; empty: none
  std::string kind;      // "gguf", "rdrr", "huggingface"
  std::string entry;     // the file to load; empty: the folder
  std::string stored;    // when: "2026-11-21T06:30:00Z"
  std::vector<StoredFile> files;
  uint64_t bytes() const;
};

struct StoredModel {
  std::string name;
  std::string folder;
  Record record;
  std::string load_path() const;  // what `doppler run -m` is given
};

struct UnfinishedModel {
  std::string name;
  std::string source;
  uint64_t bytes_done = 0;
  std::optional<uint64_t> bytes_total;  // as far as the source told
};

struct StoreListing {
  std::vector<StoredModel> models;
  std::vector<UnfinishedModel> unfinished;
  std::vector<std::string> problems;  // a sentence for each folder that is neither
};

// Letters, digits and . _ - after a letter or digit, at most 128, not ending in .part. The rule is the same in a
// browser.
bool is_store_name(std::string_view name);
// The nearest store name to any text: "my model (1).gguf" -> "my-model-1". Empty: no character can be kept.
std::string store_name_of(std::string_view text);

// $DOPPLER_HOME/models, else "models" in user_folder(UserFolder::kData).
Result<std::string> store_folder();

class ModelStore {
 public:
  explicit ModelStore(std::string folder) : folder_(std::move(folder)) {}
  static Result<ModelStore> open();  // of store_folder(); it need not exist

  const std::string& folder() const { return folder_; }
  std::string path_of(std::string_view name) const { return folder_ + "/" + std::string(name); }
  StoreListing list() const;  // by name; a store that is not there is empty
  // Error: no model of that name (with the nearest one), a damaged record.
  Result<StoredModel> find(const std::string& name) const;
  bool has(const std::string& name) const;  // finished, whatever its record says
  bool has_unfinished(const std::string& name) const;
  // Removes a finished model, or the remains of a download. Error: neither exists, or its pull is running.
  Result<uint64_t> remove(const std::string& name) const;  // bytes freed
  // Under another name, by hard links where the disk has them.
  Result<StoredModel> copy(const std::string& name, const std::string& to) const;
  // The model's files, without the record, to `path`: a file if the model is one, otherwise a folder. A model of one
  // file goes into a `path` that is a folder or ends with /. Folders are made. Gives the path of the file or folder.
  Result<std::string> copy_out(const std::string& name, const std::string& path) const;

 private:
  std::string folder_;
};

Json record_json(const Record& record);
Result<Record> parse_record(std::string_view text, std::string_view name);

}  // namespace doppler::store
