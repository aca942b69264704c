// mapped_file.h by mmap: the system pages in the weights when they are read, and never copies them as a whole.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/cut_files_posix.h"
#include "base/mapped_file.h"

namespace doppler {

namespace {

class OpenFile {
 public:
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile() = default;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  Result<> open(const std::string& path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) return fail(ErrorKind::kIo, "Cannot open %s: %s.", path.c_str(), std::strerror(errno));
    struct stat info{};
    if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
      return fail(ErrorKind::kIo, "%s is not a regular file.", path.c_str());
    }
    if (info.st_size == 0) return fail(ErrorKind::kInvalidInput, "%s is empty.", path.c_str());
    size_ = static_cast<size_t>(info.st_size);
    device_ = info.st_dev;
    inode_ = info.st_ino;
    return {};
  }
  int fd() const { return fd_; }
  size_t size() const { return size_; }
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }

 private:
  int fd_ = -1;
  size_t size_ = 0;
  uint64_t device_ = 0, inode_ = 0;
};

Unexpected cannot_map(const std::string& path) {
  return fail(ErrorKind::kIo, "Cannot map %s: %s.", path.c_str(), std::strerror(errno));
}

}  // namespace

uint64_t MappedFile::page_bytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

Result<MappedFile> MappedFile::open(const std::string& path) {
  OpenFile file;
  DP_CHECK(file.open(path));
  void* data = ::mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.fd(), 0);
  if (data == MAP_FAILED) return cannot_map(path);
  MappedFile mapped(path, static_cast<const uint8_t*>(data), file.size());
  mapped.device_ = file.device();
  mapped.inode_ = file.inode();
  return mapped;
}

Result<MappedFile> MappedFile::open_joined(std::span<const std::string> paths, uint64_t each) {
  if (paths.size() == 1) return open(paths[0]);
  OpenFile last;
  DP_CHECK(last.open(paths.back()));
  const size_t total = (paths.size() - 1) * each + last.size();
  // Reserves addresses for all files; each file then replaces its part.
  void* data = ::mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return cannot_map(paths[0]);
  MappedFile joined(paths[0], static_cast<const uint8_t*>(data), total);
  for (size_t i = 0; i < paths.size(); ++i) {
    OpenFile file;
    DP_CHECK(file.open(paths[i]));
    if (i + 1 < paths.size() ? file.size() != each : file.size() != last.size() || file.size() > each) {
      return fail(ErrorKind::kInvalidInput, "%s has %zu bytes; %llu were expected.", paths[i].c_str(),
                  file.size(), static_cast<unsigned long long>(each));
    }
    void* at = static_cast<uint8_t*>(data) + i * each;
    if (::mmap(at, file.size(), PROT_READ, MAP_SHARED | MAP_FIXED, file.fd(), 0) == MAP_FAILED) {
      return cannot_map(paths[i]);
    }
  }
  return joined;
}

MappedFile::MappedFile(std::string name, const uint8_t* data, size_t size)
    : name_(std::move(name)), data_(data), size_(size), watched_(watch_range(data, size)) {}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(watched_, other.watched_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

MappedFile::~MappedFile() {
  unwatch_range(watched_);
  if (data_) ::munmap(const_cast<uint8_t*>(data_), size_);
}

// A cut within the last page raises no signal: its rest reads as zeros, so the size is asked too.
Result<> MappedFile::check_whole() const {
  struct stat info{};
  const bool is_shorter = inode_ != 0 && ::stat(name_.c_str(), &info) == 0 && info.st_dev == device_ &&
                          info.st_ino == inode_ && static_cast<uint64_t>(info.st_size) < size_;
  if (!is_shorter && !was_cut(watched_)) return {};
  return fail(ErrorKind::kIo, "%s was cut while it was read: it had %zu bytes when it was opened.",
              name_.c_str(), size_);
}

namespace {

void advise(const uint8_t* data, size_t size, uint64_t offset, uint64_t count, int advice) {
  const uint64_t page = MappedFile::page_bytes();
  if (offset >= size) return;
  if (count > size - offset) count = size - offset;
  const uint64_t begin = offset / page * page;
  ::madvise(const_cast<uint8_t*>(data + begin), offset + count - begin, advice);
}

}  // namespace

void MappedFile::will_read(uint64_t offset, uint64_t count) const {
  advise(data_, size_, offset, count, MADV_WILLNEED);
}

void MappedFile::done_with(uint64_t offset, uint64_t count) const {
  advise(data_, size_, offset, count, MADV_DONTNEED);
}

}  // namespace doppler
