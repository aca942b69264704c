#include "formats/rdrr/hash_files_native.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

namespace doppler::formats {
namespace {

// Large enough that system calls do not count, small enough to stay in the second-level cache of a core.
constexpr size_t kPieceBytes = 1 << 20;

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

template <class OnBytes>
Result<Sha256> hash_file(const FileToHash& wanted, std::vector<uint8_t>& piece, OnBytes on_bytes) {
  const char* path = wanted.path.c_str();
  const OpenFile file(wanted.path);
  if (file.fd() < 0) {
    if (errno == ENOENT) return fail(ErrorKind::kInvalidInput, "%s is missing.", path);
    return fail(ErrorKind::kIo, "Cannot open %s: %s.", path, std::strerror(errno));
  }
  struct stat info{};
  if (::fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(ErrorKind::kIo, "%s is not a regular file.", path);
  }
  if (static_cast<uint64_t>(info.st_size) != wanted.bytes) {
    return fail(ErrorKind::kInvalidInput, "%s is damaged: it has %llu bytes, but the manifest names %llu.",
                path, static_cast<unsigned long long>(info.st_size),
                static_cast<unsigned long long>(wanted.bytes));
  }
  ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_SEQUENTIAL);
  Sha256Hasher hasher;
  for (uint64_t left = wanted.bytes; left != 0;) {
    const ssize_t count = ::read(file.fd(), piece.data(), std::min<uint64_t>(piece.size(), left));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return fail(ErrorKind::kIo, "Cannot read %s: %s.", path,
                  count < 0 ? std::strerror(errno) : "it became shorter meanwhile");
    }
    hasher.update(std::span(piece).first(static_cast<size_t>(count)));
    left -= static_cast<uint64_t>(count);
    on_bytes(static_cast<uint64_t>(count));
  }
  return hasher.finish();
}

}  // namespace

std::vector<Result<Sha256>> hash_files(std::span<const FileToHash> files, unsigned threads,
                                       const HashProgress& progress) {
  std::vector<Result<Sha256>> results(files.size(), Sha256{});
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  uint64_t done = 0;
  const auto on_bytes = [&](uint64_t bytes) {
    if (!progress) return;
    const std::lock_guard lock(mutex);
    progress(done += bytes);
  };
  const auto work = [&] {
    std::vector<uint8_t> piece(kPieceBytes);
    for (size_t i = next++; i < files.size(); i = next++) results[i] = hash_file(files[i], piece, on_bytes);
  };
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  threads = static_cast<unsigned>(std::min<size_t>(threads, files.size()));
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return results;
}

}  // namespace doppler::formats
