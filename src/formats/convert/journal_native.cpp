#include "formats/convert/journal_native.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace doppler::formats {
namespace {

constexpr size_t kMaxBytes = 1 << 20;  // a line each half a second or 64 MB; longer ones are not ours

Unexpected failed(const std::string& path) {
  return fail(ErrorKind::kIo, "Cannot write %s: %s.", path.c_str(), std::strerror(errno));
}

// True if the locked file still has its name: another process may have finished and removed it in between.
bool still_named(int fd, const std::string& path) {
  struct stat ours{}, named{};
  return ::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
         ours.st_dev == named.st_dev;
}

}  // namespace

Journal::Journal(std::string path, int fd, const Sha256& conversion)
    : path_(std::move(path)), fd_(fd), title_("doppler convert " + sha256_hex(conversion)) {}

Journal::~Journal() { ::close(fd_); }

Result<std::unique_ptr<Journal>> Journal::open(const std::string& path, const Sha256& conversion) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return failed(path);
  std::unique_ptr<Journal> journal(new Journal(path, fd, conversion));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 || !still_named(fd, path)) {
    return fail(ErrorKind::kIo, "Another process is converting to the file of %s.", path.c_str());
  }
  std::string text(kMaxBytes, '\0');
  const ssize_t count = ::pread(fd, text.data(), text.size(), 0);
  text.resize(count < 0 ? 0 : static_cast<size_t>(count));
  if (text.empty()) {
    DP_CHECK(journal->append(journal->title_));
    return journal;
  }
  // The last line may be half written: only lines with their end count.
  const std::vector<std::string> lines = split(text, '\n');
  if (lines.size() < 2 || lines[0] != journal->title_) {
    journal->was_of_another_ = true;
    DP_CHECK(journal->begin_anew());
    return journal;
  }
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    const auto tensors = parse_int(lines[i]);
    if (tensors && *tensors > 0) journal->done_ = static_cast<size_t>(*tensors);
  }
  // A half line must not become a part of the next one.
  if (!lines.back().empty()) DP_CHECK(journal->append(""));
  return journal;
}

Result<> Journal::append(const std::string& line) {
  const std::string text = line + "\n";
  const bool written =
      ::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fdatasync(fd_) == 0;
  return written ? Result<>() : failed(path_);
}

Result<> Journal::begin_anew() {
  done_ = 0;
  if (::ftruncate(fd_, 0) != 0) return failed(path_);
  return append(title_);
}

Result<> Journal::add(size_t tensors_done) { return append(std::to_string(tensors_done)); }

void Journal::remove() { ::unlink(path_.c_str()); }

}  // namespace doppler::formats
