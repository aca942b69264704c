// Threads take pieces of the file in turn, compute them and write them at their place (synth_native.h).
#include "formats/synth/synth_native.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/file.h"

namespace doppler::formats {
namespace {

constexpr uint64_t kPiece = 4 << 20;       // large enough to hide the system call, small enough for the cache
constexpr unsigned kMaxSynthThreads = 16;  // beyond, the page cache is the limit

// errno, or 0.
int write_all(const SyntheticModel& model, OpenFile& file, const SynthProgress& progress) {
  std::atomic<uint64_t> next{0};
  std::atomic<int> error{0};
  const auto work = [&](bool reports) {
    std::vector<uint8_t> piece(kPiece);
    while (error == 0) {
      const uint64_t offset = next.fetch_add(kPiece);
      if (offset >= model.size()) return;
      if (reports && progress) progress(offset, model.size());
      const auto bytes = std::span(piece).first(std::min(kPiece, model.size() - offset));
      model.fill(offset, bytes);
      if (!file.write_at(bytes, offset)) error = errno;
    }
  };
  // The calling thread works too.
  std::vector<std::thread> threads(std::clamp(std::thread::hardware_concurrency(), 1u, kMaxSynthThreads) - 1);
  for (std::thread& thread : threads) thread = std::thread(work, false);
  work(true);
  for (std::thread& thread : threads) thread.join();
  return error;
}

}  // namespace

Result<> write_synthetic(const SyntheticModel& model, const std::string& path,
                         const SynthProgress& progress) {
  const std::string temporary = path + ".part";
  OpenFile file = OpenFile::open(temporary, kToWriteNew);
  if (!file) return fail(ErrorKind::kIo, "Cannot write %s: %s.", temporary.c_str(), std::strerror(errno));
  int error = write_all(model, file, progress);
  if (!file.close() && error == 0) error = errno;
  if (error == 0 && !rename_path(temporary, path)) error = errno;
  if (error == 0) return {};
  remove_file(temporary);
  return fail(ErrorKind::kIo, "Cannot write %s (%s): %s.", path.c_str(), format_bytes(model.size()).c_str(),
              std::strerror(error));
}

}  // namespace doppler::formats
