#include "formats/rdrr/hash_files_native.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/file.h"

namespace doppler::formats {
namespace {

// Large enough that system calls do not count, small enough to stay in the second-level cache of a core.
constexpr size_t kPieceBytes = 1 << 20;

template <class OnBytes>
Result<Sha256> hash_file(const FileToHash& wanted, std::vector<uint8_t>& piece, OnBytes on_bytes) {
  const char* path = wanted.path.c_str();
  const OpenFile file = OpenFile::open(wanted.path);
  if (!file) {
    if (errno == ENOENT) return fail(ErrorKind::kInvalidInput, "%s is missing.", path);
    return fail(ErrorKind::kIo, "Cannot open %s: %s.", path, std::strerror(errno));
  }
  const auto facts = file.facts();
  if (!facts || facts->kind != FileKind::kRegular) {
    return fail(ErrorKind::kIo, "%s is not a regular file.", path);
  }
  if (facts->bytes != wanted.bytes) {
    return fail(ErrorKind::kInvalidInput, "%s is damaged: it has %llu bytes, but the manifest names %llu.",
                path, static_cast<unsigned long long>(facts->bytes),
                static_cast<unsigned long long>(wanted.bytes));
  }
  file.will_read_in_order();
  Sha256Hasher hasher;
  for (uint64_t left = wanted.bytes; left != 0;) {
    const auto some = std::span(piece).first(std::min<uint64_t>(piece.size(), left));
    const auto count = file.read_at(some, wanted.bytes - left);
    if (count != some.size()) {
      return fail(ErrorKind::kIo, "Cannot read %s: %s.", path,
                  count ? "it became shorter meanwhile" : std::strerror(errno));
    }
    hasher.update(some);
    left -= some.size();
    on_bytes(some.size());
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
