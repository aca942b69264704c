// mapped_file.h by mmap: the weights are paged in by the system as they are read, never copied as a whole.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/mapped_file.h"

namespace doppler {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(ErrorKind::kIo, "Cannot open %s: %s.", path.c_str(), std::strerror(errno));
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return fail(ErrorKind::kIo, "%s is not a regular file.", path.c_str());
  }
  if (info.st_size == 0) {
    ::close(fd);
    return fail(ErrorKind::kInvalidInput, "%s is empty.", path.c_str());
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  const int error = errno;
  ::close(fd);
  if (data == MAP_FAILED)
    return fail(ErrorKind::kIo, "Cannot map %s: %s.", path.c_str(), std::strerror(error));
  return MappedFile(static_cast<const uint8_t*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<uint8_t*>(data_), size_);
}

namespace {

void advise(const uint8_t* data, size_t size, uint64_t offset, uint64_t count, int advice) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
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
