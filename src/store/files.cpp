#include "store/files.h"

#include <cerrno>
#include <cstring>

#include "base/folders.h"
#include "base/text.h"

namespace doppler::store {

namespace {

bool is_full(int code) {
#ifdef EDQUOT
  if (code == EDQUOT) return true;
#endif
  return code == ENOSPC;
}

}  // namespace

Unexpected fail_errno(const char* verb, const std::string& path) {
  const int code = errno;
  const char* why = is_full(code) ? "the disk is full" : std::strerror(code);
  return fail(ErrorKind::kIo, "Cannot %s %s: %s.", verb, printable(path, 4096).c_str(), why);
}

Result<File> File::open(const std::string& path, const OpenMode& mode) {
  OpenFile file = OpenFile::open(path, mode);
  if (!file) return fail_errno("open", path);
  return File(std::move(file), path);
}

Result<File> File::open_at(const File& folder, const std::string& name, const OpenMode& mode) {
  const std::string path = folder.path() + "/" + name;
  OpenFile file = OpenFile::open_at(folder.file_, name, mode);
  if (!file) return fail_errno("open", path);
  return File(std::move(file), path);
}

Result<FileFacts> File::facts() const {
  const auto facts = file_.facts();
  if (!facts) return fail_errno("read", path_);
  return *facts;
}

Result<uint64_t> File::size() const {
  DP_TRY(const FileFacts told, facts());
  return told.bytes;
}

Result<void> File::resize(uint64_t bytes) {
  if (!file_.resize(bytes)) return fail_errno("write", path_);
  return {};
}

Result<void> File::write_at(std::span<const uint8_t> bytes, uint64_t offset) {
  if (!file_.write_at(bytes, offset)) return fail_errno("write", path_);
  return {};
}

Result<size_t> File::read_at(std::span<uint8_t> bytes, uint64_t offset) const {
  const auto count = file_.read_at(bytes, offset);
  if (!count) return fail_errno("read", path_);
  return *count;
}

Result<File> File::duplicate() const {
  OpenFile copy = file_.duplicate();
  if (!copy) return fail_errno("open", path_);
  return File(std::move(copy), path_);
}

Result<void> File::flush() {
  if (!file_.flush()) return fail_errno("flush", path_);
  return {};
}

std::optional<std::string> read_small_file(const std::string& path) {
  constexpr size_t kMost = 1 << 20;
  const auto file = File::open(path);
  if (!file) return {};
  std::string text(kMost + 1, '\0');
  const auto count = file->read_at({reinterpret_cast<uint8_t*>(text.data()), text.size()}, 0);
  if (!count || *count > kMost) return {};
  text.resize(*count);
  return text;
}

Result<void> write_small_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".new";
  DP_TRY(File file, File::open(temporary, kToWriteNew));
  DP_CHECK(file.write_at({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, 0));
  DP_CHECK(file.flush());
  return rename_path(temporary, path);
}

Result<void> flush_folder(const std::string& path) {
  if (!doppler::flush_folder(path)) return fail_errno("flush", path);
  return {};
}

Result<void> rename_path(const std::string& from, const std::string& to) {
  if (!doppler::rename_path(from, to)) return fail_errno("make", to);
  return {};
}

Result<void> remove_tree(const std::string& path) {
  if (doppler::remove_tree(path)) return {};
  return fail(ErrorKind::kIo, "Cannot remove %s: %s.", printable(path, 4096).c_str(), std::strerror(errno));
}

Result<void> make_folders(const std::string& path) {
  if (doppler::make_folders(path)) return {};
  return fail(ErrorKind::kIo, "Cannot make the folder %s: %s.", printable(path, 4096).c_str(),
              std::strerror(errno));
}

Result<uint64_t> free_bytes(const std::string& folder) {
  const auto bytes = free_disk_bytes(folder);
  if (!bytes) return fail_errno("look at", folder);
  return *bytes;
}

Result<File> lock_file(const std::string& path, const std::string& busy) {
  DP_TRY(File file, File::open(path, kToReadAndWrite));
  if (file.file_.lock()) return file;
  if (errno == EWOULDBLOCK) return fail(ErrorKind::kIo, "%s", busy.c_str());
  return fail_errno("lock", path);
}

}  // namespace doppler::store
