// file.h by POSIX calls.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"

namespace doppler {
namespace {

int descriptor_of(intptr_t handle) { return static_cast<int>(handle); }

int flags_of(const OpenMode& mode) {
  int flags = O_CLOEXEC | (mode.writes ? (mode.reads ? O_RDWR : O_WRONLY) : O_RDONLY);
  if (mode.makes) flags |= O_CREAT;
  if (mode.empties) flags |= O_TRUNC;
  if (mode.appends) flags |= O_APPEND;
  if (!mode.follows_links) flags |= O_NOFOLLOW;
  if (mode.is_folder) flags |= O_DIRECTORY;
  if (!mode.waits) flags |= O_NONBLOCK;
  return flags;
}

mode_t rights_of(FileReaders readers) {
  switch (readers) {
    case FileReaders::kOthersRead:
      return 0644;
    case FileReaders::kAsUserSet:
      return 0666;
    case FileReaders::kOnlyUser:
      return 0600;
  }
  return 0600;
}

int64_t nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

FileFacts facts_from(const struct stat& status) {
#ifdef __APPLE__
  const timespec modified = status.st_mtimespec, changed = status.st_ctimespec;
#else
  const timespec modified = status.st_mtim, changed = status.st_ctim;
#endif
  return {.kind = S_ISREG(status.st_mode)   ? FileKind::kRegular
                  : S_ISDIR(status.st_mode) ? FileKind::kFolder
                                            : FileKind::kOther,
          .bytes = static_cast<uint64_t>(status.st_size),
          .disk_bytes = static_cast<uint64_t>(status.st_blocks) * 512,  // the unit, whatever the disk's
          .device = static_cast<uint64_t>(status.st_dev),
          .number = static_cast<uint64_t>(status.st_ino),
          .modified_ns = nanoseconds(modified),
          .changed_ns = nanoseconds(changed)};
}

// Calls `some` with what is left until all is done. It returns the count that it took, as write() does.
template <class Some>
bool write_all(std::span<const uint8_t> bytes, Some some) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = some(bytes.subspan(done), done);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = ENOSPC;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

OpenFile OpenFile::open(const std::string& path, const OpenMode& mode) {
  return OpenFile(::open(path.c_str(), flags_of(mode), rights_of(mode.readers)));
}

OpenFile OpenFile::open_at(const OpenFile& folder, const std::string& name, const OpenMode& mode) {
  return OpenFile(
      ::openat(descriptor_of(folder.handle_), name.c_str(), flags_of(mode), rights_of(mode.readers)));
}

OpenFile OpenFile::make_beside(const std::string& path, std::string& made) {
  made = path + ".XXXXXX";
  OpenFile file(::mkstemp(made.data()));
  if (file) ::fcntl(descriptor_of(file.handle_), F_SETFD, FD_CLOEXEC);
  return file;
}

bool OpenFile::close() {
  if (!*this) return true;
  return ::close(descriptor_of(std::exchange(handle_, kNone))) == 0;
}

std::optional<FileFacts> OpenFile::facts() const {
  struct stat status{};
  if (::fstat(descriptor_of(handle_), &status) != 0) return {};
  return facts_from(status);
}

bool OpenFile::write(std::span<const uint8_t> bytes) {
  return write_all(bytes, [&](std::span<const uint8_t> left, size_t) {
    return ::write(descriptor_of(handle_), left.data(), left.size());
  });
}

bool OpenFile::write_at(std::span<const uint8_t> bytes, uint64_t offset) {
  return write_all(bytes, [&](std::span<const uint8_t> left, size_t done) {
    return ::pwrite(descriptor_of(handle_), left.data(), left.size(), static_cast<off_t>(offset + done));
  });
}

std::optional<size_t> OpenFile::read_at(std::span<uint8_t> bytes, uint64_t offset) const {
  size_t total = 0;
  while (total < bytes.size()) {
    const ssize_t count = ::pread(descriptor_of(handle_), bytes.data() + total, bytes.size() - total,
                                  static_cast<off_t>(offset + total));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {};
    if (count == 0) break;
    total += static_cast<size_t>(count);
  }
  return total;
}

bool OpenFile::resize(uint64_t bytes) {
  return ::ftruncate(descriptor_of(handle_), static_cast<off_t>(bytes)) == 0;
}

bool OpenFile::flush() { return ::fsync(descriptor_of(handle_)) == 0 || errno == EINVAL; }

bool OpenFile::flush_content() {
#ifdef __APPLE__
  return flush();
#else
  return ::fdatasync(descriptor_of(handle_)) == 0 || errno == EINVAL;
#endif
}

bool OpenFile::lock() { return ::flock(descriptor_of(handle_), LOCK_EX | LOCK_NB) == 0; }

void OpenFile::will_read_in_order() const {
#ifndef __APPLE__
  ::posix_fadvise(descriptor_of(handle_), 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
}

OpenFile OpenFile::duplicate() const { return OpenFile(::fcntl(descriptor_of(handle_), F_DUPFD_CLOEXEC, 0)); }

int OpenFile::release_descriptor() { return descriptor_of(std::exchange(handle_, kNone)); }

std::optional<FileFacts> facts_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  return facts_from(status);
}

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::FILE* open_stdio(const std::string& path, const char* mode) { return std::fopen(path.c_str(), mode); }

bool rename_path(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0;
}

bool exchange_folders(const std::string& one, const std::string& other) {
#ifdef __APPLE__
  return ::renamex_np(one.c_str(), other.c_str(), RENAME_SWAP) == 0;
#else
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
#endif
}

bool remove_file(const std::string& path) { return ::unlink(path.c_str()) == 0; }

bool flush_folder(const std::string& path) {
  OpenFile folder = OpenFile::open(path.empty() ? "." : path, kToReadFolder);
  return folder && folder.flush();
}

std::optional<uint64_t> free_disk_bytes(const std::string& folder) {
  struct statvfs status{};
  if (::statvfs(folder.c_str(), &status) != 0) return {};
  return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
}

std::optional<std::string> real_path(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (!resolved) return {};
  std::string real(resolved);
  std::free(resolved);
  return real;
}

bool make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return true;
  const auto facts = errno == EEXIST ? facts_of(path) : std::nullopt;
  if (facts && facts->kind != FileKind::kFolder) errno = ENOTDIR;
  return facts && facts->kind == FileKind::kFolder;
}

bool is_private_folder(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & 077) == 0;
}

std::string make_temporary_folder(std::string_view prefix) {
  std::error_code error;
  std::string path =
      (std::filesystem::temp_directory_path(error) / (std::string(prefix) + "XXXXXX")).string();
  return !error && ::mkdtemp(path.data()) ? path : std::string();
}

bool is_one_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

}  // namespace doppler
