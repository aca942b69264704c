#include "store/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/text.h"

namespace doppler::store {

namespace fs = std::filesystem;

Unexpected fail_errno(const char* verb, const std::string& path) {
  const int code = errno;
  const char* why = code == ENOSPC || code == EDQUOT ? "the disk is full" : std::strerror(code);
  return fail(ErrorKind::kIo, "Cannot %s %s: %s.", verb, printable(path, 4096).c_str(), why);
}

Result<File> File::open(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (file < 0) return fail_errno("open", path);
  return File(file, path);
}

Result<File> File::open_at(const File& folder, const std::string& name, int flags) {
  const std::string path = folder.path() + "/" + name;
  const int file = ::openat(folder.number(), name.c_str(), flags | O_CLOEXEC, 0644);
  if (file < 0) return fail_errno("open", path);
  return File(file, path);
}

File::~File() {
  if (file_ >= 0) ::close(file_);
}

Result<uint64_t> File::size() const {
  struct stat status{};
  if (::fstat(file_, &status) != 0) return fail_errno("read", path_);
  return static_cast<uint64_t>(status.st_size);
}

Result<void> File::resize(uint64_t bytes) {
  if (::ftruncate(file_, static_cast<off_t>(bytes)) != 0) return fail_errno("write", path_);
  return {};
}

Result<void> File::write_at(std::span<const uint8_t> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail_errno("write", path_);
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

Result<size_t> File::read_at(std::span<uint8_t> bytes, uint64_t offset) const {
  size_t total = 0;
  while (total < bytes.size()) {
    const ssize_t count =
        ::pread(file_, bytes.data() + total, bytes.size() - total, static_cast<off_t>(offset + total));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("read", path_);
    if (count == 0) break;
    total += static_cast<size_t>(count);
  }
  return total;
}

Result<File> File::duplicate() const {
  const int copy = ::fcntl(file_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail_errno("open", path_);
  return File(copy, path_);
}

Result<void> File::flush() {
  if (::fsync(file_) != 0) return fail_errno("flush", path_);
  return {};
}

std::optional<std::string> read_small_file(const std::string& path) {
  constexpr size_t kMost = 1 << 20;
  const auto file = File::open(path, O_RDONLY);
  if (!file) return {};
  std::string text(kMost + 1, '\0');
  const auto count = file->read_at({reinterpret_cast<uint8_t*>(text.data()), text.size()}, 0);
  if (!count || *count > kMost) return {};
  text.resize(*count);
  return text;
}

Result<void> write_small_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".new";
  DP_TRY(File file, File::open(temporary, O_WRONLY | O_CREAT | O_TRUNC));
  DP_CHECK(file.write_at({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, 0));
  DP_CHECK(file.flush());
  return rename_path(temporary, path);
}

Result<void> flush_folder(const std::string& path) {
  DP_TRY(File folder, File::open(path, O_RDONLY | O_DIRECTORY));
  return folder.flush();
}

Result<void> rename_path(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) return fail_errno("make", to);
  return {};
}

Result<void> remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) {
    return fail(ErrorKind::kIo, "Cannot remove %s: %s.", printable(path, 4096).c_str(),
                error.message().c_str());
  }
  return {};
}

Result<void> make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    return fail(ErrorKind::kIo, "Cannot make the folder %s: %s.", printable(path, 4096).c_str(),
                error.message().c_str());
  }
  return {};
}

Result<uint64_t> free_bytes(const std::string& folder) {
  struct statvfs status{};
  if (::statvfs(folder.c_str(), &status) != 0) return fail_errno("look at", folder);
  return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
}

Result<File> lock_file(const std::string& path, const std::string& busy) {
  DP_TRY(File file, File::open(path, O_RDWR | O_CREAT));
  if (::flock(file.number(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) return fail(ErrorKind::kIo, "%s", busy.c_str());
  return fail_errno("lock", path);
}

}  // namespace doppler::store
