#include "server/files/file_store.h"

#include <ctime>

#include "base/folders.h"
#include "base/log.h"
#include "base/text.h"
#include "server/files/record.h"

namespace doppler::server {
namespace {

constexpr const char* kFileStoreIdPrefix = "file-";

}  // namespace

Json StoredFile::json() const {
  return {{"id", id},
          {"object", "file"},
          {"bytes", bytes},
          {"created_at", created},
          {"filename", filename},
          {"purpose", purpose},
          {"status", "processed"}};
}

std::unique_ptr<FileStore> FileStore::open(std::unique_ptr<PrivateFolder> folder, uint64_t most_bytes) {
  std::unique_ptr<FileStore> out(new FileStore(std::move(folder), most_bytes));
  out->read_earlier();
  return out;
}

void FileStore::read_earlier() {
  for (auto& [id, json] : read_records(*folder_, kFileStoreIdPrefix)) {
    const auto bytes = file_bytes(folder_->path_of(id));
    if (!bytes) continue;
    StoredFile file{.id = id, .filename = {}, .purpose = {}, .bytes = *bytes, .created = 0};
    if (const auto text = get_string(json, "filename"); text && *text) file.filename = **text;
    if (const auto text = get_string(json, "purpose"); text && *text) file.purpose = **text;
    if (const auto number = get_integer(json, "created_at"); number && *number) file.created = **number;
    files_.emplace(id, std::move(file));
  }
  // Removes the remains of an end in the middle.
  for (const std::string& name : folder_->names()) {
    const bool is_content = name.starts_with(kFileStoreIdPrefix) && name.find('.') == std::string::npos;
    if (is_content && !files_.contains(name)) folder_->remove(name);
  }
}

uint64_t FileStore::bytes() const {
  uint64_t sum = 0;
  for (const auto& [id, file] : files_) sum += file.bytes;
  return sum;
}

Result<void> FileStore::check_room(uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  const uint64_t taken = this->bytes();
  if (files_.size() < kMostFiles && taken <= most_bytes_ && bytes <= most_bytes_ - taken) return {};
  return fail(ErrorKind::kOutOfMemory,
              "%zu files take %s; allowed are %zu files and %s together (--files-size): delete some first.",
              files_.size(), format_bytes(taken).c_str(), kMostFiles, format_bytes(most_bytes_).c_str());
}

Result<StoredFile> FileStore::put(std::string_view content, const std::string& filename,
                                  const std::string& purpose) {
  DP_CHECK(check_room(content.size()));
  StoredFile file{.id = new_id(kFileStoreIdPrefix),
                  .filename = filename,
                  .purpose = purpose,
                  .bytes = content.size(),
                  .created = std::time(nullptr)};
  DP_CHECK(folder_->write(file.id, content));
  return add(std::move(file));
}

Result<StoredFile> FileStore::adopt(const std::string& name, const std::string& filename,
                                    const std::string& purpose) {
  const auto bytes = file_bytes(folder_->path_of(name));
  if (!bytes) return fail(ErrorKind::kIo, "Cannot read %s.", folder_->path_of(name).c_str());
  StoredFile file{.id = new_id(kFileStoreIdPrefix),
                  .filename = filename,
                  .purpose = purpose,
                  .bytes = *bytes,
                  .created = std::time(nullptr)};
  DP_CHECK(folder_->rename(name, file.id));
  return add(std::move(file));
}

Result<StoredFile> FileStore::add(StoredFile file) {
  if (auto written = write_record(*folder_, file.id, file.json()); !written) {
    folder_->remove(file.id);
    return forward(std::move(written).error());
  }
  const std::lock_guard lock(mutex_);
  files_.emplace(file.id, file);
  return file;
}

std::optional<StoredFile> FileStore::get(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  return found == files_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<StoredFile> FileStore::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<StoredFile> out;
  for (const auto& [id, file] : files_) out.push_back(file);
  return out;
}

bool FileStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (files_.erase(id) == 0) return false;
  remove_record(*folder_, id);
  folder_->remove(id);
  return true;
}

}  // namespace doppler::server
