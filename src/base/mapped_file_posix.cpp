// mapped_file.h by mmap: the system pages in the weights when they are read, and never copies them as a whole.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/cut_files_posix.h"
#include "base/file.h"
#include "base/mapped_file.h"

namespace doppler {

namespace {

struct ToMap {
  OpenFile file;
  FileFacts facts;
  size_t bytes() const { return static_cast<size_t>(facts.bytes); }
};

Result<ToMap> open_to_map(const std::string& path) {
  OpenFile file = OpenFile::open(path);
  if (!file) return fail(ErrorKind::kIo, "Cannot open %s: %s.", path.c_str(), std::strerror(errno));
  const auto facts = file.facts();
  if (!facts || facts->kind != FileKind::kRegular)
    return fail(ErrorKind::kIo, "%s is not a regular file.", path.c_str());
  if (facts->bytes == 0) return fail(ErrorKind::kInvalidInput, "%s is empty.", path.c_str());
  return ToMap{.file = std::move(file), .facts = *facts};
}

Unexpected cannot_map(const std::string& path) {
  return fail(ErrorKind::kIo, "Cannot map %s: %s.", path.c_str(), std::strerror(errno));
}

}  // namespace

uint64_t MappedFile::page_bytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }
bool MappedFile::can_join() { return true; }

Result<MappedFile> MappedFile::open(const std::string& path) {
  DP_TRY(const ToMap whole, open_to_map(path));
  void* data = ::mmap(nullptr, whole.bytes(), PROT_READ, MAP_SHARED, static_cast<int>(whole.file.handle_), 0);
  if (data == MAP_FAILED) return cannot_map(path);
  MappedFile mapped(path, static_cast<const uint8_t*>(data), whole.bytes());
  mapped.device_ = whole.facts.device;
  mapped.inode_ = whole.facts.number;
  return mapped;
}

Result<MappedFile> MappedFile::open_joined(std::span<const std::string> paths, uint64_t each) {
  if (paths.size() == 1) return open(paths[0]);
  DP_TRY(const ToMap last, open_to_map(paths.back()));
  const size_t total = (paths.size() - 1) * each + last.bytes();
  // Reserves addresses for all files; each file then replaces its part.
  void* data = ::mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return cannot_map(paths[0]);
  MappedFile joined(paths[0], static_cast<const uint8_t*>(data), total);
  for (size_t i = 0; i < paths.size(); ++i) {
    DP_TRY(const ToMap part, open_to_map(paths[i]));
    if (i + 1 < paths.size() ? part.bytes() != each : part.bytes() != last.bytes() || part.bytes() > each) {
      return fail(ErrorKind::kInvalidInput, "%s has %zu bytes; %llu were expected.", paths[i].c_str(),
                  part.bytes(), static_cast<unsigned long long>(each));
    }
    void* at = static_cast<uint8_t*>(data) + i * each;
    if (::mmap(at, part.bytes(), PROT_READ, MAP_SHARED | MAP_FIXED, static_cast<int>(part.file.handle_), 0) ==
        MAP_FAILED) {
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
  const auto now = inode_ != 0 ? facts_of(name_) : std::nullopt;
  const bool is_shorter = now && now->device == device_ && now->number == inode_ && now->bytes < size_;
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
